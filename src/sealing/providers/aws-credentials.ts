import { readFile } from 'node:fs/promises'
import { type Static, Type } from 'typebox'
import type { Settings } from '../../config.ts'
import { ajv } from '../../kernel/json-schema.ts'
import { exchange, parse, type Reply } from './requests.ts'

/** Signs requests to AWS. The session token is undefined for the permanent credentials of a user. */
export type AwsCredentials = { accessKeyId: string; secretAccessKey: string; sessionToken: string | undefined }

/** The standard variables of AWS that give credentials. */
export const awsSettingNames = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_EC2_METADATA_SERVICE_ENDPOINT',
] as const
export type AwsSettings = Pick<Settings, (typeof awsSettingNames)[number]>

const Issued = Type.Object({
  AccessKeyId: Type.String(),
  SecretAccessKey: Type.String(),
  Token: Type.String(),
})
const isIssued = ajv.compile<Static<typeof Issued>>(Issued)

/**
 * Gets credentials from the environment, the container (ECS, EKS Pod Identity) or the instance (EC2), in this order. They
 * are used at once, so they are not stored, and do not expire in use.
 * @throws Error if there are none
 */
export async function readAwsCredentials(settings: AwsSettings): Promise<AwsCredentials> {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = settings
  if (accessKeyId !== '') return { accessKeyId, secretAccessKey, sessionToken: settings.AWS_SESSION_TOKEN || undefined }
  const { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path, AWS_CONTAINER_CREDENTIALS_FULL_URI: uri } = settings
  if (path !== '' || uri !== '') return await fromContainer(settings)
  return await fromInstance(settings)
}

/** Source: the developer guide of ECS, "Task IAM role", and the user guide of EKS, "Pod Identity" */
async function fromContainer({
  AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: path,
  AWS_CONTAINER_CREDENTIALS_FULL_URI: uri,
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
}: AwsSettings): Promise<AwsCredentials> {
  // The file is the cluster's, and other users of the container may read it.
  const headers = tokenFile === '' ? {} : { authorization: (await readFile(tokenFile, 'utf8')).trim() }
  return issued(await get(path === '' ? uri : `http://169.254.170.2${path}`, { headers }))
}

/** Source: the user guide of EC2, "Use the Instance Metadata Service", version 2 */
async function fromInstance({ AWS_EC2_METADATA_SERVICE_ENDPOINT: endpoint }: AwsSettings): Promise<AwsCredentials> {
  const latest = `${endpoint.replace(/\/$/, '')}/latest`
  const roles = `${latest}/meta-data/iam/security-credentials/`
  const asked = { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' } }
  const headers = { 'x-aws-ec2-metadata-token': (await get(`${latest}/api/token`, asked)).text }
  const role = (await get(roles, { headers })).text.trim()
  return issued(await get(`${roles}${role}`, { headers }))
}

async function get(url: string, init: RequestInit): Promise<Reply> {
  const reply = await exchange('The service that issues AWS credentials', () => new Request(url, init), {
    attemptMsMax: limits.metadataMsMax,
  }).catch(cause => {
    throw noCredentials(cause)
  })
  if (reply.status !== 200) throw noCredentials()
  return reply
}

function issued(reply: Reply): AwsCredentials {
  const body = parse(reply, isIssued)
  if (body === undefined) throw noCredentials()
  return { accessKeyId: body.AccessKeyId, secretAccessKey: body.SecretAccessKey, sessionToken: body.Token }
}

function noCredentials(cause?: unknown): Error {
  return new Error(
    'There are no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the container or the instance a role',
    { cause },
  )
}

const limits = {
  // The service is on the same machine. Outside of AWS, nothing is at its address.
  metadataMsMax: 1_000,
}
