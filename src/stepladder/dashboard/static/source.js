// Where answers come from: the server, or the page itself if it is a report.
// Every page asks through `ask`, so that live and frozen pages are the same.

const element = document.getElementById("stepladder-data");
export const frozen = element ? JSON.parse(element.textContent) : null;

// Whether this page is a report: nothing new can be asked, and nothing changes.
export const isFrozen = frozen !== null;

// Under what an answer stands in a report; `report.py` builds the same.
const keyOf = (question, params) => JSON.stringify([question, ...Object.keys(params).sort().filter((name) => params[name] !== null && params[name] !== undefined).map((name) => [name, String(params[name])])]);

export function addressOf(question, params = {}) {
  const words = new URLSearchParams();
  for (const name of Object.keys(params).sort())
    if (params[name] !== null && params[name] !== undefined) words.set(name, String(params[name]));
  return words.size ? `${question}?${words}` : question;
}

// Returns the answer to a question of `answers.py`. Raises an Error with one line for a reader.
export async function ask(question, params = {}) {
  if (isFrozen) {
    const answer = frozen.answers[keyOf(question, params)];
    if (answer === undefined) throw new Error("this report does not hold that; open the run in the dashboard");
    if (answer !== null && typeof answer === "object" && "problem" in answer && Object.keys(answer).length === 1) throw new Error(answer.problem);
    return answer;
  }
  let response;
  try {
    response = await fetch(`/api/${addressOf(question, params)}`);
  } catch {
    throw new Error("the dashboard does not answer; has its command ended?");
  }
  if (response.status === 401 || response.status === 403) throw new Error((await response.text()).trim());
  const answer = await response.json().catch(() => null);
  if (!response.ok) throw new Error(answer?.problem ?? `the dashboard failed (${response.status}); see its terminal`);
  return answer;
}

// Where a film of a run is.
export function filmAddress(run, name) {
  if (isFrozen) return frozen.films[keyOf("film", { run, name })] ?? "";
  return `/${addressOf("film", { run, name })}`;
}

// Calls `listener(names)` with the names of runs that have changed, and `onState(isConnected)`.
// A page that is not seen hears nothing: browsers allow few connections to one address. When it is
// seen again, `listener(null)` says that anything may have changed.
export function listen(listener, onState) {
  if (isFrozen) return;
  let news = null;
  function open() {
    news = new EventSource("/news");
    news.onmessage = (event) => listener(new Set(JSON.parse(event.data)));
    news.onopen = () => onState(true);
    news.onerror = () => onState(false);
  }
  open();
  document.addEventListener("visibilitychange", () => {
    news?.close();
    news = null;
    if (document.hidden) return;
    open();
    listener(null);
  });
}
