// The way to the server: a token that lives in this tab and travels in a header, and the stream.

const KEPT = "countersign-token";

export class Refused extends Error {
  constructor(status, told) {
    super(told?.message ?? "the server gave no answer that can be read");
    this.status = status;
    this.told = told ?? {};
  }
}

/** Ends what a sign-in asked for, so that nothing of it arrives under the next one. */
let ending = new AbortController();

export const token = {
  get: () => sessionStorage.getItem(KEPT),
  set(value) {
    ending.abort();
    ending = new AbortController();
    if (value) sessionStorage.setItem(KEPT, value);
    else sessionStorage.removeItem(KEPT);
  },
};

/** Whether what went wrong is only that the sign-in is over for which it was asked. */
export const isOver = (why) => why?.name === "AbortError";

const bearer = () => (token.get() ? { authorization: `Bearer ${token.get()}` } : {});

async function ask(path, options = {}) {
  const { signal } = ending;
  const headers = { ...(options.body ? { "content-type": "application/json" } : {}), ...bearer() };
  const response = await fetch(`/api/${path}`, { ...options, headers, signal, cache: "no-store", redirect: "error" });
  const told = await response.json().catch(() => null);
  signal.throwIfAborted();
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
    if (why instanceof Refused || isOver(why)) throw why;
    return await post(`do/${verb}`, asked);
  }
}

/** Ends a token that this tab has no use for any more. It is no matter whether that succeeds. */
export function end(old) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${old}` };
  fetch("/api/sign-out", { method: "POST", body: "{}", headers, cache: "no-store", redirect: "error", keepalive: true }).catch(() => null);
}

/**
 * Follows the log from `after` on as long as this sign-in lasts, and over lost connections: each piece begins where the
 * last one ended. `on.events` gets the pieces, `on.line` whether the connection stands, `on.anew` that the log is another
 * one, `on.out` that nobody is signed in any longer.
 */
export async function follow(after, on) {
  const { signal } = ending;
  let pause = 100;
  while (!signal.aborted) {
    try {
      const response = await fetch(`/api/stream?after=${after}`, { headers: bearer(), signal, cache: "no-store" });
      signal.throwIfAborted();
      if (response.status === 401) return on.out();
      if (!response.ok || !response.body) throw new Refused(response.status, await response.json().catch(() => null));
      on.line(true);
      pause = 100;
      for await (const { kind, data } of pieces(response.body)) {
        signal.throwIfAborted();
        if (kind === "signed-out") return on.out();
        after = data.sequence;
        if (kind === "anew") on.anew();
        else on.events(data);
      }
      if (!signal.aborted) on.line(false);
    } catch (why) {
      if (signal.aborted) return undefined;
      // It is asked again below.
      on.line(false, why instanceof Refused ? why.message : null);
    }
    await new Promise((go) => setTimeout(go, pause));
    pause = Math.min(pause * 2, 2000);
  }
  return undefined;
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
