-- The partner is part of the text. As a column before it, it drew look-ups of single members by partner and id into these
-- indexes while the table's statistics were old, and each then read all names of the partner.
drop index members_by_full_name;
drop index members_by_last_name;
create index members_by_full_name on members ((partner_id || ' ' || lower(first_name || ' ' || last_name)) collate "C");
create index members_by_last_name on members ((partner_id || ' ' || lower(last_name)) collate "C");
