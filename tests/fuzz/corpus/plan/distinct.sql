SELECT store_name, count(DISTINCT user_id) AS users, sum(final_amount) AS total, count(*) FROM transactions t
JOIN stores s ON t.store_id = s.store_id GROUP BY store_name HAVING count(DISTINCT user_id) > (SELECT
count(DISTINCT birthdate) + min(user_id) FROM users) ORDER BY avg(DISTINCT user_id), max(final_amount);
