/** Reads the places that the library's mistakes name: `rules[2].overrides[0].match["odd name"]`. Pure. */

const STEP = /\.?([A-Za-z_$][\w$-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** Names and places, from the outside in; as far as the path can be read (a very long name is cut in messages). */
export function stepsOf(path: string): (string | number)[] {
  const steps: (string | number)[] = [];
  STEP.lastIndex = 0;
  for (let found = STEP.exec(path); found !== null; found = STEP.exec(path)) {
    const [, name, place, quoted] = found;
    if (name !== undefined) steps.push(name);
    else if (place !== undefined) steps.push(Number(place));
    else steps.push(JSON.parse(quoted!) as string);
  }
  return steps;
}
