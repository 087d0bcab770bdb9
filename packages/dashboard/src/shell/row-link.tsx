/**
 * A link in a row of a long table. It does what wouter's does without its hooks: those of a thousand links take most of the time in which
 * a list is opened and left.
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
  // With another button or a modifier the browser opens it elsewhere.
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  event.preventDefault();
  navigation(navigate, href);
}
