SELECT count(*) AS comments, avg(sentiment) AS average
FROM comments
WHERE body ~ '[a-z]{4,} [a-z]+\?+$'
