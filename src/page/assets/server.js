// The way to the server: a token that lives in this tab and travels in a header, and the stream.

const KEPT = "countersign-token";

export class Refused extends Error {
  constructor(status, told) {
    super(told?.message ?? "the server gave no answer that can be read");
    this.status = status;
    this.told = told ?? {};
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEPT),
  set: (value) => (value ? sessionStorage.setItem(KEPT, value) : sessionStorage.removeItem(KEPT)),
};

async function ask(path, options = {}) {
  const headers = { ...(options.body ? { "content-type": "application/json" } : {}) };
  if (token.get()) headers.authorization = `Bearer ${token.get()}`;
  const response = await fetch(`/api/${path}`, { ...options, headers, cache: "no-store", redirect: "error" });
  const told = await response.json().catch(() => null);
  if (!response.ok || !told?.ok) throw new Refused(response.status, told);
  return told;
}

export const get = (path) => ask(path);
export const post = (path, body) => ask(path, { method: "POST", body: JSON.stringify(body) });

/** Does something once, whatever becomes of the connection: asked again with its id it has one effect. */
export async function act(verb, body) {
  const asked = { ...body, request_id: crypto.randomUUID() };
  try {
    return await post(`do/${verb}`, asked);
  } catch (why) {
    if (why instanceof Refused) throw why;
    return await post(`do/${verb}`, asked);
  }
}

/**
 * Follows the log from `after` on, for ever, and over lost connections: each piece begins where the last one ended.
 * `on.events` gets the pieces, `on.line` whether the connection stands, `on.out` that nobody is signed in any longer.
 */
export async function follow(after, on) {
  let pause = 100;
  while (token.get()) {
    try {
      const headers = { authorization: `Bearer ${token.get()}` };
      const response = await fetch(`/api/stream?after=${after}`, { headers, cache: "no-store" });
      if (response.status === 401) return on.out();
      if (!response.ok || !response.body) throw new Error("no stream");
      on.line(true);
      pause = 100;
      for await (const { kind, data } of pieces(response.body)) {
        if (kind === "signed-out") return on.out();
        after = data.sequence;
        on.events(data);
      }
    } catch {
      // It is asked again below.
    }
    on.line(false);
    await new Promise((go) => setTimeout(go, pause));
    pause = Math.min(pause * 2, 2000);
  }
}

async function* pieces(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const lines = rest.slice(0, end).split("\n");
      rest = rest.slice(end + 2);
      const of = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (of("data")) yield { kind: of("event") ?? "events", data: JSON.parse(of("data")) };
    }
  }
}
