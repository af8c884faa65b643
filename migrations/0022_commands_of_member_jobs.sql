-- What a member job was asked to do with a member is called a command everywhere but in this column. Older programs read and
-- write the old name, so they cannot serve this schema.

set local lock_timeout = '5s';

alter table member_job_steps rename column wish to command;
