/** The gRPC port by itself: it opens before the rest of the service is read, which takes most of a start. */
import { WaitingListener } from "../http/waiting-listener.js";
import type { Settings } from "../settings/settings.js";

export interface GrpcPort {
  readonly listener: WaitingListener;
  readonly port: number;
}

export async function openGrpcPort(settings: Pick<Settings, "host" | "grpc-port">): Promise<GrpcPort> {
  const { host, "grpc-port": port } = settings;
  const listener = new WaitingListener();
  return { listener, port: await listener.listen({ host, port, portSetting: "grpc-port" }) };
}
