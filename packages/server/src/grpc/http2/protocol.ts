/** HTTP/2 constants (RFC 9113) and the two kinds of peer errors: a stream error ends one stream, a connection error ends all of them. */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const errorCodes = {
  noError: 0x0,
  protocolError: 0x1,
  internalError: 0x2,
  flowControlError: 0x3,
  streamClosed: 0x5,
  frameSizeError: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compressionError: 0x9,
  enhanceYourCalm: 0xb,
} as const;

export type ErrorCode = (typeof errorCodes)[keyof typeof errorCodes];

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const FRAME_HEADER_BYTES = 9;
/** The largest frame that every peer accepts, and the largest that we accept. */
export const MAX_FRAME_BYTES = 16_384;
export const INITIAL_WINDOW = 65_535;
export const MAX_WINDOW = 0x7fff_ffff;
export const MAX_STREAM_ID = 0x7fff_ffff;

/** Ends the connection with GOAWAY. */
export class ConnectionError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

export function protocolError(what: string): ConnectionError {
  return new ConnectionError(errorCodes.protocolError, what);
}

export function sizeError(what: string): ConnectionError {
  return new ConnectionError(errorCodes.frameSizeError, `${what} of a wrong size`);
}
