import { createServer } from "node:http";
import { Readable } from "node:stream";
import express, { type NextFunction, type Request, type Response } from "express";
import express4 from "express4";
import { rateLimit } from "sluice/express";
import {
  adapted,
  COST_FIELD,
  type CommonOptions,
  EVENTS,
  type Framework,
  listening,
  type ServedApp,
  Stage,
  TOLD,
} from "./served-app.js";

function serveWith(make: typeof express): (options: CommonOptions) => Promise<ServedApp> {
  return (options) => {
    const stage = new Stage();
    const limits = rateLimit({
      ...adapted<Request>(options, (req) => (name) => req.get(name)),
      ...(options.ownRefusal && { onRefused: (_req, res) => void res.send("refused by hand") }),
    });
    const app = make();
    app.use(limits);
    app.get("/", (_req, res) => {
      stage.decisions.push(res.locals.rateLimit);
      res.send("ok");
    });
    app.get("/stream", (_req, res) => void Readable.from(stage.parts()).pipe(res));
    app.get("/told", (_req, res) => void res.set(...COST_FIELD).json(TOLD));
    app.get("/events", (_req, res) => void Readable.from(stage.events()).pipe(res.type(EVENTS)));
    app.get("/break", (_req, res) => {
      const parts = Readable.from(stage.brokenParts());
      parts.on("error", () => res.destroy());
      parts.pipe(res);
    });
    app.get("/fail", () => {
      throw new Error("the handler failed");
    });
    const nested = make.Router();
    nested.use(limits);
    nested.get("/leaf", (_req: Request, res: Response) => void res.send("ok"));
    app.use("/nested", nested);
    // Four parameters are what makes it a handler of errors; without it Express logs them.
    app.use((_error: Error, _req: Request, res: Response, _next: NextFunction) => void res.status(500).send("failed"));
    return listening(createServer(app), stage);
  };
}

export const frameworks: readonly Framework[] = [
  { name: "Express 5", legacyReset: "epoch", serve: serveWith(express) },
  { name: "Express 4", legacyReset: "epoch", serve: serveWith(express4) },
];
