/* Student's t distribution, for confidence intervals of means. */
#ifndef PAGESIM_STUDENT_T_H
#define PAGESIM_STUDENT_T_H

#include <stddef.h>

/* The t for which P(|T| <= t) = confidence with `degrees` degrees of freedom: 2.262 for 0.95 and 9. From the finite sums of
 * Abramowitz and Stegun 26.7.3 and 26.7.4, inverted by bisection to the last digits of a double. 0 < confidence < 1,
 * degrees 1 to 10^7. */
double student_t_quantile(double confidence, size_t degrees);

/* Mean of values, and half the width of its confidence interval from their spread; count > 0. With one value *half is
 * nan. */
double mean_with_interval(const double *values, size_t count, double confidence, double *half);

#endif
