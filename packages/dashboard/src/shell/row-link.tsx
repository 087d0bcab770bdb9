/**
 * A link in a row of a long table. Does the same as wouter's without its hooks: with a thousand links, those take most of the time of
 * opening and leaving a list.
 */
import type { MouseEvent, ReactNode } from "react";
import { navigate } from "wouter/use-browser-location";
import { linkAddress, navigation } from "./navigate.js";

interface RowLinkProps {
  readonly href: string;
  readonly className?: string;
  readonly title?: string;
  readonly children: ReactNode;
}

export function RowLink({ href, ...rest }: RowLinkProps) {
  return <a href={linkAddress(href)} onClick={(event) => follow(event, href)} {...rest} />;
}

function follow(event: MouseEvent, href: string): void {
  // With a modifier or another button, the browser opens it elsewhere.
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  event.preventDefault();
  navigation(navigate, href);
}
