/**
 * Fields of plain objects whose names come from outside: rule files, mapping files, databases, logs. Pure.
 * `object[name]` finds what every object inherits (`constructor`), and `object[name] = value` may set the prototype (`__proto__`).
 */

/** Undefined where the object has no such field of its own. */
export function ownField<V>(object: Readonly<Record<string, V>> | undefined, name: string): V | undefined {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Assigned wherever an assignment makes a field: that is faster than a definition. */
export function setOwn(object: object, name: string, value: unknown): void {
  if (name !== "__proto__") (object as Record<string, unknown>)[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
