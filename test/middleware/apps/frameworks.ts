/** Every framework that has a middleware. */
import { frameworks as express } from "./express-app.js";
import { framework as fastify } from "./fastify-app.js";
import { framework as hono } from "./hono-app.js";
import { framework as koa } from "./koa-app.js";
import { frameworks as nest } from "./nest-app.js";
import type { Framework } from "./served-app.js";

export const frameworks: readonly Framework[] = [...express, fastify, hono, koa, ...nest];
