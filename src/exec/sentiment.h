/* sentiment.h - how kindly a text speaks, by a list of words.
 *
 * Words are runs of ASCII letters and apostrophes, without letter case and without apostrophes at
 * their ends. Each word of sentiment_words.txt adds its weight, with the opposite sign when the
 * word just before it is not, no, never or ends in n't. The list is part of the binary.
 */
#ifndef EXEC_SENTIMENT_H
#define EXEC_SENTIMENT_H

#include "base/text.h"

/* The sum of the weights divided by the sum of their magnitudes: -1.0 to 1.0; 0.0 when the text has
 * none of the words. */
double sentiment_polarity(struct text text);

/* "neutral" up to `band` from 0.0 (a negative band: never), else "negative" or "positive". */
struct text sentiment_label(double polarity, double band);

#endif
