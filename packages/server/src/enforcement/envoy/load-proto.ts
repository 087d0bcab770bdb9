/** Messages from the files of `proto` (see its README), with fields in camel case. */
import { join } from "node:path";
import protobuf from "protobufjs";
import { protoFolder } from "../../own-package.js";

export function loadProto(files: string[]): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (protobuf.common.get(target) === null ? join(protoFolder, target) : target);
  return root.loadSync(files, { keepCase: false });
}
