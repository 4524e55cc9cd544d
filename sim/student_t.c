#include "sim/student_t.h"

#include <math.h>

#define HALF_PI 1.57079632679489661923

/* P(|T| <= t) with t = tan(angle) * sqrt(degrees): A(t|v). Both sums multiply each term by cos^2 and a ratio below 1. */
static double probability(double angle, size_t degrees)
{
    double c = cos(angle), s = sin(angle), term = degrees % 2 ? c : 1, sum = 0;
    for (size_t k = degrees % 2 ? 3 : 2; k <= degrees; k += 2) {
        sum += term;
        term *= c * c * (double)(k - 1) / (double)k;
        if (term < 1e-18 * sum) break;
    }
    return degrees % 2 ? (angle + s * sum) / HALF_PI : s * sum;
}

double student_t_quantile(double confidence, size_t degrees)
{
    double low = 0, high = HALF_PI;
    for (int i = 0; i < 80; i++) {
        double middle = low + (high - low) / 2;
        if (probability(middle, degrees) < confidence) low = middle;
        else high = middle;
    }
    return tan(low) * sqrt((double)degrees);
}

double mean_with_interval(const double *values, size_t count, double confidence, double *half)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < count; i++) mean += (values[i] - mean) / (double)(i + 1);
    for (size_t i = 0; i < count; i++) squares += (values[i] - mean) * (values[i] - mean);
    *half = NAN;
    if (count > 1) {
        double error = sqrt(squares / (double)(count - 1) / (double)count);
        *half = error > 0 ? student_t_quantile(confidence, count - 1) * error : 0;
    }
    return mean;
}
