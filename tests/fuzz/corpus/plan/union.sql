WITH both AS (SELECT user_id AS id, 'user' AS what FROM users
              UNION ALL SELECT store_id, store_name FROM stores)
SELECT what, count(*) AS n, count(id), min(id) FROM both WHERE id NOT IN (1, 2)
GROUP BY what HAVING count(*) > 1 ORDER BY n DESC NULLS FIRST LIMIT 5 OFFSET 1;
