/** Exit statuses: 0 done, 1 failed, 2 misuse, 3 refused (`check`). Commands throw this; only `main.ts` exits the process. */
export const exitStatus = { done: 0, failed: 1, misuse: 2, refused: 3 } as const;

export class CommandFailure extends Error {
  readonly status: (typeof exitStatus)[keyof typeof exitStatus];

  constructor(message: string, status: CommandFailure["status"] = exitStatus.failed) {
    super(message);
    this.status = status;
  }
}
