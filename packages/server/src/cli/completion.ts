/** `sluice completion bash|zsh|fish`: prints a completion script. */
import { Argument, Command } from "commander";
import { type CompletedCommand, completionScript, type Shell, shells } from "./completion-scripts.js";

/** `whole`: the program with all commands. */
export function completionCommand(whole: () => Promise<Command>): Command {
  return new Command("completion")
    .description("a script for your shell that completes commands and options")
    .addArgument(new Argument("<shell>", "whose script").choices([...shells]))
    .addHelpText(
      "after",
      `
  bash   source <(sluice completion bash), also in ~/.bashrc
  zsh    sluice completion zsh > "\${fpath[1]}/_sluice"
  fish   sluice completion fish > ~/.config/fish/completions/sluice.fish`,
    )
    .action(async (shell: Shell) => {
      process.stdout.write(completionScript(shell, treeOf(await whole())));
    });
}

function treeOf(command: Command, path: readonly string[] = []): CompletedCommand[] {
  const first = (text: string): string => text.split(/[.:;](?: |$)/)[0]!;
  const own: CompletedCommand = {
    path,
    commands: command.commands.map((inner) => ({ name: inner.name(), description: first(inner.description()) })),
    options: command.options.flatMap(({ long, description }) =>
      long == null ? [] : [{ name: long, description: first(description) }],
    ),
  };
  return [own, ...command.commands.flatMap((inner) => treeOf(inner, [...path, inner.name()]))];
}
