/** Loads message types from the files in `proto` (see its README), with fields in camelCase. */
import { join } from "node:path";
import protobuf from "protobufjs";
import { protoFolder } from "../../own-package.js";

export function loadProto(files: string[]): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (protobuf.common.get(target) === null ? join(protoFolder, target) : target);
  return root.loadSync(files, { keepCase: false });
}
