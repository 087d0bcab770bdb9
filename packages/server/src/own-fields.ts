/**
 * Access to plain objects with untrusted field names: from rule files, mapping files, databases, logs. Pure.
 * `object[name]` finds inherited properties (`constructor`), and `object[name] = value` may set the prototype (`__proto__`): prototype
 * pollution.
 */

/** Undefined if the object has no such own field. */
export function ownField<V>(object: Readonly<Record<string, V>> | undefined, name: string): V | undefined {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Uses plain assignment wherever it creates an own field: faster than defineProperty. */
export function setOwn(object: object, name: string, value: unknown): void {
  if (name !== "__proto__") (object as Record<string, unknown>)[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
