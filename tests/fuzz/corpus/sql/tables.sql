PARAMETER from_year = 2000;
PARAMETER since = DATE '2000-01-01';
CREATE TABLE credits (cast TEXT NOT NULL, id INT NOT NULL, "a.""b" DECIMAL(9,2), l TEXT[])
FROM 'credits.csv' OR 'credits/*.csv';
