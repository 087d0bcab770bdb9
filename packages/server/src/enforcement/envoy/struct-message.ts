/** Converts between `google.protobuf.Struct` and plain JSON values. */

export interface StructMessage {
  readonly fields?: Readonly<Record<string, ValueMessage>>;
}

interface ValueMessage {
  readonly nullValue?: 0;
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: StructMessage;
  readonly listValue?: { readonly values?: readonly ValueMessage[] };
}

export function plainStruct({ fields = {} }: StructMessage): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainValue(value)]));
}

function plainValue({ numberValue, stringValue, boolValue, structValue, listValue }: ValueMessage): unknown {
  if (structValue !== undefined) return plainStruct(structValue);
  if (listValue !== undefined) return (listValue.values ?? []).map(plainValue);
  return numberValue ?? stringValue ?? boolValue ?? null;
}

/** The inverse of `plainStruct`. Values that JSON does not support become null. */
export function structOf(plain: Readonly<Record<string, unknown>>): StructMessage {
  return { fields: Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, messageOf(value)])) };
}

function messageOf(value: unknown): ValueMessage {
  if (typeof value === "number") return { numberValue: value };
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(messageOf) } };
  if (typeof value === "object" && value !== null) return { structValue: structOf(value as Record<string, unknown>) };
  return { nullValue: 0 };
}
