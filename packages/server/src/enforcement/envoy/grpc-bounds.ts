/** A deadline for sending a call: without it, a call that never completes would live forever unless its client set a deadline. */
import { ResponderBuilder, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";

/** Ends calls that the client has not sent completely in time. `endless`: paths of streaming calls that never complete. */
export function sendDeadline(withinMs: number, endless: readonly string[] = []): ServerInterceptor {
  return (method, call) => {
    if (endless.includes(method.path)) return call as unknown as ServerInterceptingCall;
    let timer: NodeJS.Timeout | undefined;
    const responder = new ResponderBuilder()
      .withStart((next) => {
        timer = setTimeout(() => {
          call.sendStatus({
            code: status.DEADLINE_EXCEEDED,
            details: `the call was not sent whole within ${withinMs / 1_000} s`,
          });
        }, withinMs);
        next({
          onReceiveHalfClose(pass) {
            clearTimeout(timer);
            pass();
          },
          onCancel: () => clearTimeout(timer),
        });
      })
      .withSendStatus((sent, next) => {
        clearTimeout(timer);
        next(sent);
      });
    return new ServerInterceptingCall(call, responder.build());
  };
}
