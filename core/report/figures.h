#pragma once

#include <string>

/// How tables write their figures. What is not a number is "nan", which is news and no blank.
namespace forge::report {

/// Four decimals: "1.3011".
std::string loss_text(double loss);

/// With so many decimals and a proper minus sign.
std::string fixed_text(double number, int decimals);

/// A percentage with one decimal, "87.5 %", or four decimals.
std::string score_text(double value, bool percent);

/// "4,312", "43.1K", "291K", "3.31M".
std::string throughput_text(double tokens_per_second);

/// "512.00 MiB", "1.50 GiB".
std::string memory_text(double bytes);

/// A figure by its name (scores.h), as its column writes it.
std::string figure_text(double value, const std::string& figure);

/// "p 0.031", "p 0.0004", "p < 0.0001".
std::string chance_text(double p);

/// A fraction as a percentage with one decimal: "2.0 %".
std::string percent_text(double fraction);

/// A fraction as a signed percentage with one decimal: "−9.3 %", "+41.3 %".
std::string change_text(double change);

}  // namespace forge::report
