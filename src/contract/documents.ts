/** One of the OpenAPI documents that the service serves: which operations it covers, and what stands before them. */
export type DocumentHead = {
  covers: (path: string) => boolean
  title: string
  introduction: string
  tags: { name: string; description: string }[]
  securitySchemes: Record<string, object>
  /** The scheme of operations that name none. */
  defaultScheme: string
  /** Whether operations that have a fuller shape are described with it, as callers get it who prefer it. */
  prefersRepresentation?: boolean
}

const idempotencyAndErrors = `Send \`x-idempotency-key\` with every request that you may have to retry: for 7 days, the same key with the same request returns the first answer again, without a second effect.

Every response has the headers \`x-request-id\`, \`ratelimit\` and \`ratelimit-policy\`; this document declares them once, in \`x-response-headers\`.

Every refusal is \`{ "issues": [ { "code", "message", … } ] }\`. Branch on \`code\`; \`GET /v1/errors\` lists them all.`

/** The API of partners: their servers, and the pages of their members. */
export const partnerDocument: DocumentHead = {
  covers: path => !isOperatorPath(path),
  title: 'Midmonth partner API',
  introduction: `On-demand pay: members see what they have earned and withdraw some of it before payday.

Every request needs the header \`x-api-key\`. ${idempotencyAndErrors}`,
  tags: [
    { name: 'Withdrawals', description: 'Quote a withdrawal, complete it and follow its status.' },
    {
      name: 'Member sessions',
      description:
        'What a page in a member’s browser may call, with a short-lived token instead of an API key. See [Embed withdrawals](/docs/guides/embed).',
    },
    { name: 'Members', description: 'The workers who can withdraw earned pay, and their tiers.' },
    {
      name: 'Member jobs',
      description:
        'Change many members at once, by a list of actions or by a file with the complete list of members. Templates: [members-template.xlsx](/members-template.xlsx), [members-template.csv](/members-template.csv).',
    },
    { name: 'Pay runs', description: 'Earned pay that members can withdraw.' },
    { name: 'Pay cycles', description: 'The days that one payday settles.' },
    { name: 'Events', description: 'A complete, ordered feed of all state changes.' },
    {
      name: 'Sandbox',
      description:
        'Move the clock, and decide what the simulated bank reports. Only on a sandbox; a live installation answers 404. See docs/guides/sandbox.md.',
    },
    {
      name: 'Webhooks',
      description:
        'Signed requests to your endpoints when something happens. See [Receive webhooks](/docs/guides/webhooks).',
    },
    { name: 'Service', description: 'Health, error codes and idempotency keys.' },
  ],
  securitySchemes: {
    apiKey: { type: 'apiKey', name: 'x-api-key', in: 'header', description: 'One key per partner and mode.' },
    memberSession: {
      type: 'http',
      scheme: 'bearer',
      description: 'The token of a member session, for the page of one member.',
    },
  },
  defaultScheme: 'apiKey',
}

/** The same API as callers see it who send `Prefer: return=representation` with every request. */
export const representationDocument: DocumentHead = {
  ...partnerDocument,
  introduction: `${partnerDocument.introduction}

This document describes the responses to requests with \`Prefer: return=representation\`; \`/openapi.json\` describes the others.`,
  prefersRepresentation: true,
}

/** The API of operators, for all partners of an installation. */
export const operatorDocument: DocumentHead = {
  covers: isOperatorPath,
  title: 'Midmonth operator API',
  introduction: `What the operators of an installation do: partners and their keys, tiers, floats, payouts, and the health of the service.

Every request needs the header \`x-api-key\` with an operator key (\`midmonth operator key create\`). ${idempotencyAndErrors}`,
  tags: [
    { name: 'Partners', description: 'Employers, gig platforms and payroll bureaus, and their API keys.' },
    { name: 'Tiers', description: 'The fees and limits of withdrawals, by version.' },
    { name: 'Members', description: 'Members of any partner, and their release after a review.' },
    { name: 'Withdrawals', description: 'Withdrawals of any partner, with their timelines.' },
    { name: 'Float', description: 'The money that funds withdrawals.' },
    { name: 'Finance', description: 'Fees, invoices, revenue, and the journal.' },
    { name: 'Payouts', description: 'Batches of payments, bank files, and bank answers that did not fit.' },
    { name: 'Operations', description: 'The health of the service, the books and the audit log.' },
  ],
  securitySchemes: {
    operatorKey: {
      type: 'apiKey',
      name: 'x-api-key',
      in: 'header',
      description: 'A key of an operator, `mmoperator_…`. Keys of partners are refused.',
    },
  },
  defaultScheme: 'operatorKey',
}

/** Whether a path is below a version of the operators' API. */
export function isOperatorPath(path: string): boolean {
  return /^\/operator\/v[0-9]+(\/|\?|$)/.test(path)
}
