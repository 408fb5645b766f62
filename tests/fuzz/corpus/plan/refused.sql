SELECT m.titel, sum(title) FROM movies m, movis LEFT JOIN users ON user_id > 3 GROUP BY 1;
