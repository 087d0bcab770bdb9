/** An error boundary per page: the rail, the banners and the other pages keep working. */
import { Component, type ReactNode } from "react";
import { Notice } from "../components/panel.js";

interface PageFailureProps {
  /** Navigating to another URL resets it. */
  readonly address: string;
  readonly children: ReactNode;
}

interface PageFailureState {
  readonly failure: { readonly error: unknown } | undefined;
  readonly address: string;
}

export class PageFailure extends Component<PageFailureProps, PageFailureState> {
  override state: PageFailureState = { failure: undefined, address: this.props.address };

  static getDerivedStateFromError(error: unknown): Partial<PageFailureState> {
    return { failure: { error } };
  }

  static getDerivedStateFromProps({ address }: PageFailureProps, state: PageFailureState): PageFailureState | null {
    return address === state.address ? null : { failure: undefined, address };
  }

  override render(): ReactNode {
    const { failure } = this.state;
    if (failure === undefined) return this.props.children;
    return (
      <div className="page">
        <Notice tone="bad" title="This page could not be drawn.">
          <p>
            The fault is the console's, not yours, and nothing was changed. Unsaved changes of a rule are kept in this
            tab:{" "}
            <button type="button" className="button small" onClick={() => location.reload()}>
              Load again
            </button>
          </p>
          <p className="small break">{String(failure.error)}</p>
        </Notice>
      </div>
    );
  }
}
