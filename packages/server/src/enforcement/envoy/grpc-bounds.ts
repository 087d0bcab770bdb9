/**
 * Bounds of a gRPC peer: the time to send a call. A call that was never sent whole has no deadline of its own unless its client gave one.
 */
import { ResponderBuilder, ServerInterceptingCall, type ServerInterceptor, status } from "@grpc/grpc-js";

/** Ends calls whose client has not sent them whole in time. `endless`: the paths of streams that are never whole. */
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
