/**
 * Variables that Kubernetes injects into every pod for the Services around it (`enableServiceLinks`). For a Service called sluice:
 * SLUICE_SERVICE_HOST, SLUICE_PORT_8080_TCP and others, including SLUICE_PORT with a URL. Pure.
 */

const NAME = /_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$/;

export function isServiceLinkName(name: string): boolean {
  return NAME.test(name);
}

/** Recognised by its value: such a variable is no setting, even if a setting has the same name. */
export function isServiceLink(name: string, value: string): boolean {
  return name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value);
}
