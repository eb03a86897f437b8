// Submit, work and finish a job with openapi-fetch and the types that openapi-typescript made; prints what it saw as JSON.

import createClient from "openapi-fetch";
import type { components, paths } from "./geartrain";

type Job = components["schemas"]["JobView"];
type State = components["schemas"]["JobState"];

function needed<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`no ${what}`);
  return value;
}

function text(value: string | components["schemas"]["Base64"]): string {
  return typeof value === "string" ? value : value.base64;
}

async function main(url: string, name: string): Promise<void> {
  const client = createClient<paths>({ baseUrl: url });

  const submitted = await client.POST("/api/v1/jobs", { body: { function: name, payload: "hello", priority: "high" } });
  const job: Job = needed(submitted.data, "job");
  const queued: State = job.state;
  if (queued !== "queued") throw new Error(`the job is ${queued}`);
  const handle = text(job.handle);

  const several = await client.POST("/api/v1/jobs/batch", { body: { jobs: [{ function: name }, { function: "" }] } });
  const batch = needed(several.data, "batch");

  const registered = await client.POST("/api/v1/workers", { body: { functions: [name] } });
  const id = needed(registered.data, "worker").id;
  const claim = await client.POST("/api/v1/workers/{id}/claim", { params: { path: { id }, query: { wait: 10 } } });
  const claimed = needed(claim.data, "claimed job");
  const path = { id, handle: text(claimed.handle) };
  await client.POST("/api/v1/workers/{id}/jobs/{handle}/progress", {
    params: { path },
    body: { numerator: 1, denominator: 2 },
  });
  const running = needed((await client.GET("/api/v1/jobs/{handle}", { params: { path: { handle } } })).data, "job");
  const completed = await client.POST("/api/v1/workers/{id}/jobs/{handle}/complete", {
    params: { path },
    body: text(claimed.payload).toUpperCase(),
    bodySerializer: (body) => body,
    headers: { "Content-Type": "application/octet-stream" },
  });
  await client.DELETE("/api/v1/workers/{id}", { params: { path: { id } } });
  const ended = needed((await client.GET("/api/v1/jobs/{handle}", { params: { path: { handle } } })).data, "job");
  const result = await client.GET("/api/v1/jobs/{handle}/result", { params: { path: { handle } }, parseAs: "text" });
  const listed = await client.GET("/api/v1/jobs", { params: { query: { function: name } } });
  const unknown = await client.GET("/api/v1/jobs/{handle}", { params: { path: { handle: "H:none:1" } } });

  console.log(
    JSON.stringify({
      priority: claimed.priority,
      progress: [running.numerator, running.denominator],
      completed: completed.response.status,
      state: ended.state,
      result: Buffer.from(needed(result.data, "result")).toString("hex"),
      batch: [batch.accepted, batch.refused, batch.items[1]?.problem?.kind],
      listed: needed(listed.data, "list").items.length,
      unknown: unknown.error?.kind,
    }),
  );
}

main(process.argv[2] ?? "", process.argv[3] ?? "").catch((error) => {
  console.error(error);
  process.exit(1);
});
