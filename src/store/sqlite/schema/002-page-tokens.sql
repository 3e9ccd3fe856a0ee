-- Form 2. A room page's token is told from the others: a member has so many of them, and the oldest ends.

ALTER TABLE credentials ADD COLUMN of_page INTEGER NOT NULL DEFAULT 0;
