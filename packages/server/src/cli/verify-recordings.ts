/** `sluice simulate --verify recordings/`: verifies recordings decision by decision. Exit status 1 if there is a difference. */
import { Recordings } from "../analysis/read-recording.js";
import { type Verification, Verifier } from "../analysis/verify.js";
import { printable } from "../printable.js";
import { CommandFailure } from "./command-failure.js";
import { whileReading } from "./log-arguments.js";
import { colours, figure, printJson, printLine } from "./print.js";

export async function verifyRecordings(files: readonly string[], { json }: { json: boolean }): Promise<void> {
  const recordings = new Recordings(files);
  const verifier = new Verifier();
  const found = await whileReading(recordings.counts, async () => {
    for await (const { instance, lines } of recordings.lines()) for (const line of lines) verifier.add(instance, line);
    return verifier.end();
  });
  const { lines, bad, instances, unfinished } = recordings.counts;
  if (json) printJson({ ...found, log: { lines, bad, instances: [...instances], unfinished } });
  else show(found, recordings);
  const differing = found.differences + found.otherNumbers;
  if (differing > 0) throw new CommandFailure(`verify: ${figure(differing)} decisions differ from the recording`);
}

function show(found: Verification, { counts: { lines, bad, instances, unfinished } }: Recordings): void {
  const { decisions, differences, otherNumbers, uncertain, byPolicy, dropped, unreadable, samples } = found;
  printLine(`${figure(lines)} lines of ${figure(instances.size)} instances`);
  if (bad > 0) printLine(colours.yellow(`${figure(bad)} lines could not be read`));
  for (const file of unfinished)
    printLine(printable(`${file}: has no end: it is still written to, or a crash tore it`));
  if (dropped > 0) printLine(colours.yellow(`${figure(dropped)} lines were dropped while recording`));
  for (const why of unreadable) printLine(printable(why));
  const outcome =
    differences + otherNumbers === 0
      ? colours.green("no difference")
      : colours.red(`${figure(differences)} with another outcome, ${figure(otherNumbers)} with other numbers`);
  printLine(`${figure(decisions)} decisions made again: ${outcome}`);
  if (byPolicy > 0) printLine(`${figure(byPolicy)} more were made by failure policies while the store was away`);
  if (uncertain > 0)
    printLine(`${figure(uncertain)} cannot be judged: the recording does not know what the counters held before them`);
  for (const { at, recorded, replayed } of samples) {
    printLine(printable(`  ${at}: recorded ${JSON.stringify(recorded)}, replayed ${JSON.stringify(replayed)}`));
  }
}
