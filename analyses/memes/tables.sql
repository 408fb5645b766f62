-- Posts and comments of a meme forum, as in "The Reddit /r/me_irl dataset".

CREATE TABLE posts (
    id TEXT NOT NULL,
    score INT NOT NULL,
    url TEXT
) FROM 'posts.csv' OR 'the-reddit-irl-dataset-posts.csv';

CREATE TABLE comments (
    permalink TEXT NOT NULL,
    body TEXT,
    sentiment DOUBLE
) FROM 'comments.csv' OR 'the-reddit-irl-dataset-comments.csv';
