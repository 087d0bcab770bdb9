/** Requests to rate limit services, as gRPC messages that were encoded by hand from the published field numbers. */

/** An hour's, by the name of the entry that is counted by. */
export const limits = { user: 1_000_000, visitor: 1 };

/** A field of bytes or text, and one of a whole number. */
function field(number, content) {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}

function numberField(number, value) {
  const bytes = [number << 3];
  for (let left = value; ; left = Math.floor(left / 128)) {
    bytes.push(left < 128 ? left : (left % 128) | 128);
    if (left < 128) return Buffer.from(bytes);
  }
}

function framed(...fields) {
  const message = Buffer.concat(fields);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

export const apis = {
  /** domain = 1, descriptors = 2 { entries = 1 { key = 1, value = 2 } } */
  rls: {
    path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
    messageOf: ({ key, value }) =>
      framed(field(1, "bench"), field(2, field(1, Buffer.concat([field(1, key), field(2, value)])))),
  },
  /** requests = 1 { name = 1, unique_key = 2, hits = 3, limit = 4, duration = 5 }, a token bucket in memory. */
  gubernator: {
    path: "/pb.gubernator.V1/GetRateLimits",
    messageOf: ({ key, value }) => {
      const numbers = [numberField(3, 1), numberField(4, limits[key]), numberField(5, 3_600_000)];
      return framed(field(1, Buffer.concat([field(1, key), field(2, value), ...numbers])));
    },
  },
};
