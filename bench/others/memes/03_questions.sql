-- Regular expression without plain words in it: comments that end in a question.

SELECT count(*) AS comments, avg(sentiment) AS average
FROM comments
WHERE regexp_matches(body, '[a-z]{4,} [a-z]+\?+$');
