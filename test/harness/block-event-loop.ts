/** Holds this thread up without computing: to the event loop it is as if something had, and the processor is left to others. */
const never = new Int32Array(new SharedArrayBuffer(4));

export function blockEventLoop(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}
