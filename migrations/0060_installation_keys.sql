-- What the database must be able to read back, such as the secrets that sign webhooks, could be used by anyone who can read the
-- database or a copy of it. It is sealed from now on with keys of the installation, which are stored only wrapped by a key
-- from outside the database.

set local lock_timeout = '5s';

create table installation_keys (
  number integer primary key check (number between 1 and 255),
  -- Encrypted by the provider.
  wrapped bytea not null,
  -- Identifies the key outside the database that wraps this one.
  provider text not null,
  created_at timestamptz not null
);

-- A migration cannot seal, and sealing is older than the first installation.
do $$
begin
  if exists (select from webhook_endpoints) or exists (select from users where totp_secret is not null) then
    raise exception 'this database has webhooks or second factors of a development version, whose secrets are not sealed; start with an empty database';
  end if;
end
$$;

alter table webhook_secrets alter column secret type bytea using null;
alter table webhook_endpoints alter column headers drop default;
alter table webhook_endpoints alter column headers type bytea using null;
