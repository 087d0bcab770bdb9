/** Access logs as a shop's would be: few clients send most requests, times go on by some milliseconds. The same lines in every run. */
import { once } from "node:events";
import { createWriteStream } from "node:fs";

const START_MS = Date.UTC(2026, 10, 16, 7);
const CLIENTS = 20_000;
const BATCH = 5_000;
const AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36";
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const spellings = {
  combined({ at, client, target, i }) {
    const iso = at.toISOString();
    const time = `${iso.slice(8, 10)}/${months[at.getUTCMonth()]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`;
    return `${client} - - [${time}] "GET ${target} HTTP/1.1" 200 ${1_000 + (i % 999)} "https://example.com/start" "${AGENT}"`;
  },
  /** As Caddy writes them. */
  json({ at, client, target, i }) {
    const headers = { "User-Agent": [AGENT], "Accept-Encoding": ["gzip, deflate, br"] };
    const request = {
      remote_ip: client,
      client_ip: client,
      proto: "HTTP/2.0",
      method: "GET",
      host: "shop.example",
      uri: target,
      headers,
    };
    return JSON.stringify({
      level: "info",
      ts: at.getTime() / 1_000,
      logger: "http.log.access",
      msg: "handled request",
      request,
      bytes_read: 0,
      user_id: "",
      duration: 0.0009 + (i % 50) / 1e4,
      size: 10_900,
      status: 200,
    });
  },
};

/** `clientOf`: by a number from 0 to 1, the busiest client at 0. */
export async function writeLog(file, { format, lines, clientOf = addressOf }) {
  const out = createWriteStream(file);
  let state = 7;
  const random = () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return state / 2 ** 31;
  };
  for (let from = 0; from < lines; from += BATCH) {
    const texts = [];
    for (let i = from; i < Math.min(lines, from + BATCH); i++) {
      const at = new Date(START_MS + i * 5);
      const target = `/v1/items/${Math.floor(random() * 1_000)}?page=${i % 7}`;
      texts.push(spellings[format]({ at, client: clientOf(random() ** 4), target, i }));
    }
    if (!out.write(`${texts.join("\n")}\n`)) await once(out, "drain");
  }
  out.end();
  await once(out, "close");
}

function addressOf(share) {
  const number = Math.floor(share * CLIENTS);
  return `10.1.${number >> 8}.${number & 0xff}`;
}
