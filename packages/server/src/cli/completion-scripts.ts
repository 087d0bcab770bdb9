/**
 * Generates shell completion for bash, zsh and fish: commands, subcommands and options; files for everything else.
 * In: the command tree. Out: a script to be sourced by the shell. Pure.
 * The scripts are self-contained: calling the program on each Tab would wait for its start.
 */
export interface CompletedCommand {
  /** Words after the program name: `[]`, `["rules"]`, `["rules", "apply"]`. */
  readonly path: readonly string[];
  readonly commands: readonly Described[];
  /** Long flags. */
  readonly options: readonly Described[];
}

interface Described {
  readonly name: string;
  readonly description: string;
}

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

export function completionScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  return { bash, zsh, fish }[shell](commands);
}

const keyOf = ({ path }: CompletedCommand): string => path.join(" ");
const namesOf = ({ commands, options }: CompletedCommand): string =>
  [...commands, ...options].map(({ name }) => name).join(" ");

/** Collects the command words before the cursor, for bash and zsh. */
function pathCases(commands: readonly CompletedCommand[], indent: string): string {
  const patterns = commands.filter(({ path }) => path.length > 0).map((command) => `"${keyOf(command)}"`);
  return `${indent}case "\${at:+$at }$word" in\n${indent}  ${patterns.join("|")}) at="\${at:+$at }$word" ;;\n${indent}esac`;
}

function bash(commands: readonly CompletedCommand[]): string {
  const cases = commands.map((command) => `    "${keyOf(command)}") words="${namesOf(command)}" ;;`);
  return `# sluice for bash: source <(sluice completion bash)
_sluice() {
  local at="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
${pathCases(commands, "    ")}
  done
  case "$at" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice
`;
}

function zsh(commands: readonly CompletedCommand[]): string {
  const item = ({ name, description }: Described): string => quoted(`${name.replaceAll(":", "\\:")}:${description}`);
  const cases = commands.map(
    (command) => `    "${keyOf(command)}") items=(${[...command.commands, ...command.options].map(item).join(" ")}) ;;`,
  );
  return `#compdef sluice
# sluice for zsh: sluice completion zsh > "\${fpath[1]}/_sluice"
_sluice() {
  local at="" word
  local -a items
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
${pathCases(commands, "    ")}
  done
  case "$at" in
${cases.join("\n")}
  esac
  _describe -o sluice items || _files
}
if [ "$funcstack[1]" = "_sluice" ]; then _sluice "$@"; else compdef _sluice sluice; fi
`;
}

function fish(commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap((command) => {
    const when = `-n ${quoted(`__sluice_at ${keyOf(command)}`.trim())}`;
    const subcommands = command.commands.map(
      ({ name, description }) => `complete -c sluice ${when} -f -a ${quoted(name)} -d ${quoted(description)}`,
    );
    const options = command.options.map(
      ({ name, description }) => `complete -c sluice ${when} -l ${name.slice(2)} -d ${quoted(description)}`,
    );
    return [...subcommands, ...options];
  });
  const known = commands.filter(({ path }) => path.length > 0).map((command) => quoted(keyOf(command)));
  return `# sluice for fish: sluice completion fish > ~/.config/fish/completions/sluice.fish
function __sluice_at
  set -l at
  for word in (commandline -opc)[2..-1]
    if contains -- (string join ' ' $at $word) ${known.join(" ")}
      set -a at $word
    end
  end
  test "$at" = "$argv"
end
${lines.join("\n")}
`;
}

/** For all three shells: inside single quotes only the quote itself is special. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "’")}'`;
}
