/** Usage of calls through the LLM gateway, by model, with the price table. */
import type { ModelPrice, ModelView, SpendView } from "../api/shapes.js";
import { count, visible, withUnit } from "../components/format.js";
import { Empty, Panel } from "../components/panel.js";

export function Models({ view }: { view: SpendView }) {
  const { models, prices = [] } = view;
  const priceOf = (model: string): ModelPrice | undefined => prices.find((price) => price.model === model);
  const used = new Set(models.map(({ model }) => model));
  const unused = prices.filter(({ model }) => !used.has(model));
  const isPriced = view.prices !== undefined;
  return (
    <Panel
      title="Models"
      about={
        isPriced
          ? "Calls through the LLM gateway. A model that the price table does not list costs as much as the dearest one."
          : "Calls through the LLM gateway. --usage-prices gives them a price."
      }
      flush
    >
      {models.length + unused.length === 0 ? (
        <Empty title="No call was made yet." />
      ) : (
        <table className="cards">
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col" className="number">
                Calls
              </th>
              <th scope="col" className="number">
                Prompt tokens
              </th>
              <th scope="col" className="number">
                Completion tokens
              </th>
              {isPriced && (
                <th scope="col" className="number">
                  Cost
                </th>
              )}
              {isPriced && <th scope="col">Price of a million</th>}
            </tr>
          </thead>
          <tbody>
            {models.map((model) => (
              <ModelRow key={model.model} model={model} price={priceOf(model.model)} isPriced={isPriced} />
            ))}
            {unused.map((price) => (
              <ModelRow key={price.model} model={{ ...none, model: price.model }} price={price} isPriced />
            ))}
          </tbody>
        </table>
      )}
    </Panel>
  );
}

const none = { calls: 0, promptTokens: 0, completionTokens: 0, cachedTokens: 0, microdollars: 0 };

function ModelRow({ model, price, isPriced }: { model: ModelView; price: ModelPrice | undefined; isPriced: boolean }) {
  return (
    <tr>
      <td className="mono break">{model.model === "(other)" ? "not listed" : visible(model.model)}</td>
      <td data-label="Calls" className="number">
        {count(model.calls)}
      </td>
      <td data-label="Prompt tokens" className="number">
        <span>
          {count(model.promptTokens)}
          {model.cachedTokens > 0 && (
            <span className="soft small numbers-kind">{count(model.cachedTokens)} from a cache</span>
          )}
        </span>
      </td>
      <td data-label="Completion tokens" className="number">
        {count(model.completionTokens)}
      </td>
      {isPriced && (
        <td data-label="Cost" className="number nowrap">
          {model.microdollars === undefined ? "–" : withUnit(model.microdollars, "microdollars")}
        </td>
      )}
      {isPriced && (
        <td data-label="Price of a million" className="small">
          {price === undefined
            ? "the dearest"
            : `$${price.prompt} prompt, $${price.completion} completion, $${price.cachedPrompt} cached${writeOf(price)}`}
        </td>
      )}
    </tr>
  );
}

/** Empty if tokens written to a cache cost the same as others. */
function writeOf({ prompt, cacheWrite }: ModelPrice): string {
  return cacheWrite === prompt ? "" : `, $${cacheWrite} written to a cache`;
}
