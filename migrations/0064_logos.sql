-- The logo of a partner, which its members see on the hosted page. Apart from the partner, so that no request reads it without need.

set local lock_timeout = '5s';

create table partner_logos (
  partner_id id primary key references partners (id),
  media_type text not null check (media_type in ('image/png', 'image/jpeg', 'image/webp')),
  bytes bytea not null,
  changed_at timestamptz not null,
  constraint logo_is_small check (length(bytes) between 1 and 102400)
);
