/** The regions that share a global store: traffic, units held, round trip to the global store, and whether one is cut off. */
import { useQuery } from "@tanstack/react-query";
import { regionsQuery } from "../api/queries.js";
import type { RegionsView, RegionView } from "../api/shapes.js";
import { clockTime, count, milliseconds, rate, visible } from "../components/format.js";
import { Empty, Notice, Page, Panel, Read } from "../components/panel.js";

export function RegionsPage() {
  const regions = useQuery(regionsQuery);
  return (
    <Page title="Regions" about="Regions that share a global store, for rules with scope: global.">
      <Read of={regions} what="regions">
        {(view) => (
          <>
            <ScopeNotice view={view} />
            {view.own === undefined ? <NoRegions /> : <RegionTable view={view} />}
          </>
        )}
      </Read>
    </Page>
  );
}

function ScopeNotice({ view: { scope, own } }: { view: RegionsView }) {
  if (own === undefined || scope === "all") return null;
  return (
    <Notice tone="bad" title="The global store does not answer.">
      {scope === "region"
        ? "Only the instances of this region are known. The others are not shown: how they are is unknown."
        : "This region's store does not answer either. Only this instance is known; the rest is unknown."}
    </Notice>
  );
}

function NoRegions() {
  return (
    <Panel>
      <Empty title="This service counts in one store.">
        <p>
          Start it with <code>--global-store</code> and <code>--region</code>, and give rules <code>scope: global</code>
          , to hold one limit over several regions.
        </p>
      </Empty>
    </Panel>
  );
}

function RegionTable({ view }: { view: RegionsView }) {
  if (view.regions.length === 0) {
    return (
      <Panel>
        <Empty title="No region was heard of yet.">Instances report themselves every two seconds.</Empty>
      </Panel>
    );
  }
  return (
    <Panel flush>
      <table className="cards">
        <thead>
          <tr>
            <th scope="col">Region</th>
            <th scope="col">State</th>
            <th scope="col" className="number">
              Instances
            </th>
            <th scope="col" className="number">
              Requests
            </th>
            <th scope="col" className="number">
              Refused
            </th>
            <th scope="col" className="number">
              Global rules
            </th>
            <th scope="col" className="number">
              Units held
            </th>
            <th scope="col" className="number">
              Round trip
            </th>
          </tr>
        </thead>
        <tbody>
          {view.regions.map((region) => (
            <RegionRow key={region.region} region={region} isOwn={region.region === view.own} />
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function RegionRow({ region, isOwn }: { region: RegionView; isOwn: boolean }) {
  // A silent region's figures are unknown, not 0.
  const isKnown = region.state !== "silent";
  const shown = (text: string): string => (isKnown ? text : "–");
  return (
    <tr>
      <td>
        <span className="mono strong break">{visible(region.region)}</span>{" "}
        {isOwn && <span className="tag accent">here</span>}
      </td>
      <td data-label="State">
        <span>
          <StateTag region={region} />
          {region.sinceMs !== undefined && (
            <span className="soft small node-version">
              {region.state === "silent" ? "last heard of at" : "since"} {clockTime(region.sinceMs)}
            </span>
          )}
        </span>
      </td>
      <td data-label="Instances" className="number">
        {shown(count(region.instances))}
      </td>
      <td data-label="Requests" className="number nowrap">
        {shown(`${rate(region.requestsPerSecond)}/s`)}
      </td>
      <td data-label="Refused" className="number nowrap">
        {shown(`${rate(region.refusedPerSecond)}/s`)}
      </td>
      <td data-label="Global rules" className="number">
        <GlobalTraffic region={region} isKnown={isKnown} />
      </td>
      <td data-label="Units held" className="number">
        <span>
          {shown(count(region.units))}
          {isKnown && (
            <span className="soft small node-version">
              in {region.pools === 1 ? "1 pool" : `${count(region.pools)} pools`}
            </span>
          )}
        </span>
      </td>
      <td data-label="Round trip" className="number nowrap">
        {region.state === "up" && region.roundTripMs !== undefined ? milliseconds(region.roundTripMs) : "–"}
      </td>
    </tr>
  );
}

function GlobalTraffic({ region, isKnown }: { region: RegionView; isKnown: boolean }) {
  if (!isKnown) return "–";
  return (
    <span className="nowrap">
      {rate(region.globalPerSecond)}/s
      {region.waitedPerSecond > 0 && (
        <span className="soft small node-version">{rate(region.waitedPerSecond)}/s waited</span>
      )}
      {region.byPolicyPerSecond > 0 && (
        <span className="soft small node-version">{rate(region.byPolicyPerSecond)}/s by failure policy</span>
      )}
    </span>
  );
}

function StateTag({ region: { state, cutOffInstances, instances } }: { region: RegionView }) {
  if (state === "silent") return <span className="tag">silent</span>;
  if (state === "cut-off") return <span className="tag bad">cut off</span>;
  return cutOffInstances > 0 ? (
    <span className="tag warn">
      {count(cutOffInstances)} of {count(instances)} cut off
    </span>
  ) : (
    <span className="tag good">up</span>
  );
}
