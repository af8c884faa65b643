import { useEffect, useState } from 'preact/hooks'
import { act, actUnlessUndone } from '../act.ts'
import { partnerId, send } from '../api.ts'
import { BadButton } from '../components/button.tsx'
import { DropZone } from '../components/drop-zone.tsx'
import { Page, Panel } from '../components/layout.tsx'
import { useLoaded } from '../query.ts'
import { session } from '../session.ts'

const path = '/console/v1/logo'
const key = 'logo'

/** Settings of the member page, for the partner's admins. */
export default function Settings() {
  return (
    <Page title="Settings">
      <div class="narrow">
        <Logo />
      </div>
    </Page>
  )
}

function Logo() {
  const { value: logo } = useLoaded(key, () => send<Blob | undefined>('GET', path))
  const name = session.value?.partners.find(({ id }) => id === partnerId.value)?.name ?? ''
  const upload = async (file: File) => {
    await act(
      async () => send('PUT', path, { body: { data: await inBase64(file) } }),
      'Logo saved; members can see it',
      key,
    )
  }
  const remove = () => {
    actUnlessUndone('Logo removed.', () => send('DELETE', path), { changes: [key] })
  }
  return (
    <Panel title="Logo">
      <div class="stack">
        <p class="quiet">
          Members see the logo above their pay on the page that your link opens. Without a logo, they see the first
          letter of your name.
        </p>
        <div class="logo-preview row">
          {logo ? <Picture blob={logo} /> : <span class="logo-letter">{[...name][0]}</span>}
          <b>{name}</b>
          {logo && <BadButton act={remove}>Remove</BadButton>}
        </div>
        <DropZone
          label="Drop a picture here"
          kinds="image/png,image/jpeg,image/webp"
          hint="PNG, JPEG or WebP, up to 100 KiB and 2,000 × 2,000 pixels."
          onFile={file => void upload(file)}
        />
      </div>
    </Panel>
  )
}

/** An `img` address does not work, because the request names the partner in a header. */
function Picture({ blob }: { blob: Blob }) {
  const [address, setAddress] = useState<string>()
  useEffect(() => {
    const objectUrl = URL.createObjectURL(blob)
    setAddress(objectUrl)
    return () => URL.revokeObjectURL(objectUrl)
  }, [blob])
  return address === undefined ? null : <img class="logo" src={address} alt="Logo" />
}

async function inBase64(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''))
}
