// What is asked, and the same as the words of an address: only what differs from the defaults.
// A question: { scenario, curriculum, settings, learner, num_envs?, budget?, seed?, num_seeds? }.

const USUAL = { scenario: "chain-10", curriculum: "frontier" };
const NUMBERS = ["num_envs", "budget", "seed", "num_seeds"];
const LEARNER = /^(dynamics|noise)\./;

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

export function fromWords(words) {
  const question = { ...USUAL, settings: {}, learner: {} };
  for (const [name, text] of Object.entries(words)) {
    if (name in USUAL) question[name] = text;
    else if (NUMBERS.includes(name)) question[name] = parsed(text);
    else question[LEARNER.test(name) ? "learner" : "settings"][name] = parsed(text);
  }
  return question;
}

export function asWords(question) {
  const { settings, learner, ...rest } = question;
  const words = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  const own = Object.entries({ ...settings, ...learner }).map(([name, value]) => [name, JSON.stringify(value)]);
  return Object.fromEntries([...words, ...own]);
}

// What the server is asked: without settings that are as they are by default.
export function differing(values, known) {
  const usual = new Map(known.map((one) => [one.name, JSON.stringify(one.value)]));
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => usual.has(name) && usual.get(name) !== JSON.stringify(value)));
}
