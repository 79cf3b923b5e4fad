#include "core/data/tasks/capo_lists.h"

#include <string_view>

#include "core/base/random.h"

namespace forge::data::tasks {
namespace {

using Parts = std::vector<std::string_view>;

/// The first `count` of all pairs, each as start + middle + end.
std::vector<std::string> pairs(const Parts& starts,
                               const Parts& ends,
                               size_t count,
                               std::string_view middle = "") {
  std::vector<std::string> all;
  for (const std::string_view start : starts) {
    for (const std::string_view end : ends) {
      if (all.size() < count) all.push_back(std::string(start).append(middle).append(end));
    }
  }
  return all;
}

std::vector<std::string> make_first_names() {
  return pairs({"Al", "Be", "Ca", "Da", "El", "Fa", "Ga", "Ha", "Is", "Jo",
                "Ka", "Le", "Ma", "Ne", "Or", "Pa", "Ro", "Sa", "Te", "Vi"},
               {"rin", "lia", "mon",  "dra",  "ven",  "sa", "tor",  "nel",   "ris",  "bet",
                "wyn", "dor", "mira", "than", "lise", "go", "vard", "nette", "rico", "zelle"},
               400);
}

std::vector<std::string> make_middle_names() {
  return pairs({"Ada", "Bel", "Cor", "Dun", "Eve", "Fen", "Gil", "Hol", "Ing", "Jas",
                "Kel", "Lor", "Mar", "Nor", "Oli", "Per", "Qui", "Ros", "Sel", "Tam"},
               {"a",    "ene", "ian",  "is",  "ora", "ett", "ick",  "ane", "us",  "elle",
                "ward", "by",  "ford", "ley", "son", "win", "more", "ton", "ine", "o"},
               400);
}

std::vector<std::string> make_last_names() {
  return pairs({"Abel", "Arch", "Bald", "Bark", "Bell", "Birk", "Brad", "Bren", "Cald", "Carl",
                "Chad", "Clay", "Cole", "Cran", "Dale", "Dray", "Eber", "Edge", "Fair", "Farn",
                "Gold", "Grey", "Hale", "Hart", "Hawk", "Holm", "Kirk", "Lang", "Lock", "Mill",
                "Nash", "Oakl", "Park", "Rave", "Rock", "Stan", "Thor", "Wain", "West", "Whit"},
               {"able", "bury",  "by",    "croft", "dale", "den",  "er",  "field", "ford",
                "gate", "ham",   "hurst", "ing",   "land", "ley",  "low", "man",   "mere",
                "more", "ridge", "son",   "stead", "ton",  "well", "wood"},
               1000);
}

const Parts& place_starts() {
  static const Parts starts = {"Maple",  "Cedar", "Silver", "Stone", "Clear",  "Green",  "High",
                               "Lake",   "North", "South",  "East",  "West",   "Spring", "Summer",
                               "Winter", "Fox",   "Eagle",  "Bear",  "Copper", "Harbor"};
  return starts;
}

std::vector<std::string> make_cities() {
  static const Parts states = {"AL", "AZ", "CA", "CO", "CT", "FL", "GA", "ID", "IL", "KS",
                               "LA", "MA", "MD", "MN", "MO", "NC", "NJ", "NV", "NY", "OH",
                               "OR", "PA", "SC", "TN", "TX", "UT", "VA", "WA", "WI"};
  std::vector<std::string> cities =
      pairs(place_starts(),
            {"wood", "ton", "field", "ville", "brook", "port", "view", "haven", "crest", "dale"},
            200);
  for (size_t i = 0; i < cities.size(); ++i)
    cities[i].append(", ").append(states[i % states.size()]);
  return cities;
}

std::vector<std::string> make_universities() {
  std::vector<std::string> all;
  for (const std::string& place :
       pairs(place_starts(), {"mont", "ridge", "burg", "mouth", "stead"}, 100)) {
    all.push_back("University of " + place);
    all.push_back(place + " State University");
    all.push_back(place + " Institute of Technology");
  }
  return all;
}

std::vector<std::string> make_fields() {
  return pairs({"Applied",
                "Theoretical",
                "Computational",
                "Experimental",
                "Comparative",
                "Environmental",
                "Industrial",
                "Medical",
                "Modern",
                "Social"},
               {"Mathematics",
                "Physics",
                "Chemistry",
                "Biology",
                "Economics",
                "History",
                "Linguistics",
                "Philosophy",
                "Engineering",
                "Psychology"},
               100,
               " ");
}

std::vector<std::string> make_employers() {
  return pairs({"Arden",   "Atlas",  "Beacon",   "Corvus",  "Delphi",   "Ember",  "Falcon",
                "Granite", "Helio",  "Iris",     "Juniper", "Keystone", "Lumen",  "Meridian",
                "Nimbus",  "Orion",  "Pinnacle", "Quartz",  "Ridge",    "Solace", "Tundra",
                "Umbra",   "Vertex", "Willow",   "Xenon",   "Yonder",   "Zephyr"},
               {"Foods",
                "Motors",
                "Systems",
                "Energy",
                "Bank",
                "Airlines",
                "Stores",
                "Steel",
                "Media",
                "Insurance"},
               263,
               " ");
}

CapoLists make_lists() {
  CapoLists lists = {make_first_names(),
                     make_middle_names(),
                     make_last_names(),
                     make_cities(),
                     make_universities(),
                     make_fields(),
                     make_employers(),
                     {}};
  RandomStream random(0, stream_number("capo headquarters"));
  for (size_t i = 0; i < lists.employers.size(); ++i) {
    lists.headquarters.push_back(static_cast<int>(random.below(lists.cities.size())));
  }
  return lists;
}

/// The first `count` sentences of all ways to begin one and all ways to tell a fact, in which a
/// space stands at both ends of what is between subject and value.
std::vector<CapoTemplate> sentences(
    size_t count, const std::vector<std::pair<std::string, std::string>>& tellings) {
  static const std::vector<std::string> beginnings = {"",
                                                      "Records show that ",
                                                      "As is well known, ",
                                                      "Those who ask learn that ",
                                                      "It is written that ",
                                                      "According to an old letter, ",
                                                      "Friends will confirm that "};
  std::vector<CapoTemplate> all;
  for (const auto& [between, after] : tellings) {
    for (const std::string& beginning : beginnings) {
      if (all.size() < count) all.push_back({beginning, between, after});
    }
  }
  return all;
}

}  // namespace

const CapoLists& capo_lists() {
  static const CapoLists lists = make_lists();
  return lists;
}

const std::array<const char*, 12>& month_names() {
  static const std::array<const char*, 12> names = {"January",
                                                    "February",
                                                    "March",
                                                    "April",
                                                    "May",
                                                    "June",
                                                    "July",
                                                    "August",
                                                    "September",
                                                    "October",
                                                    "November",
                                                    "December"};
  return names;
}

const std::array<std::vector<CapoTemplate>, 6>& capo_templates() {
  static const std::array<std::vector<CapoTemplate>, 6> all = {
      sentences(46,
                {{" was born on ", "."},
                 {" came into the world on ", "."},
                 {" has a birthday to remember, ", "."},
                 {" first saw the light of day on ", "."},
                 {" gives the date of birth as ", "."},
                 {" has counted the years since ", "."},
                 {" drew a first breath on ", ", a day of joy."}}),
      sentences(49,
                {{" was born in ", "."},
                 {" comes from ", "."},
                 {" spent the first years of life in ", "."},
                 {" calls ", " the town of birth."},
                 {" has family roots in ", "."},
                 {" took the first steps in ", "."},
                 {" is a native of ", "."}}),
      sentences(49,
                {{" studied at ", "."},
                 {" holds a degree from ", "."},
                 {" went to lectures at ", "."},
                 {" graduated from ", "."},
                 {" was a student of ", "."},
                 {" chose ", " for higher education."},
                 {" was taught by the professors of ", "."}}),
      sentences(52,
                {{" majored in ", "."},
                 {" is trained in ", "."},
                 {" took a degree in ", "."},
                 {" wrote a thesis in ", "."},
                 {" learned all about ", "."},
                 {" passed every examination in ", "."},
                 {" made ", " the centre of those studies."},
                 {" was drawn to ", " early on."}}),
      sentences(47,
                {{" worked in ", "."},
                 {" found a position in ", "."},
                 {" moved to ", " for a career."},
                 {" had an office in ", "."},
                 {" earned a living in ", "."},
                 {" went to work every day in ", "."},
                 {" made a career in the city of ", "."}}),
      sentences(48,
                {{" worked for ", "."},
                 {" was employed by ", "."},
                 {" had a job at ", "."},
                 {" joined the staff of ", "."},
                 {" signed a contract with ", "."},
                 {" was on the payroll of ", "."},
                 {" took on duties at ", "."}})};
  return all;
}

}  // namespace forge::data::tasks
