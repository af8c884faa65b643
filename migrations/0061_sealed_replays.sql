-- The stored responses hold what their requests were answered with: personal data, and the tokens of member sessions. They are sealed.

set local lock_timeout = '5s';

-- A migration cannot seal, and sealing is older than the first installation. In a sandbox a repeated key is a new request.
do $$
begin
  if exists (select from installation where mode = 'live') and exists (select from idempotency_keys) then
    raise exception 'this live database has responses of a development version, which are not sealed; start with an empty database';
  end if;
end
$$;
delete from idempotency_keys;

alter table idempotency_keys
  drop column headers,
  drop column body,
  -- The headers as JSON, a line feed and the body.
  add column answer bytea,
  add constraint an_answer_has_a_status check ((answer is null) = (status is null));
