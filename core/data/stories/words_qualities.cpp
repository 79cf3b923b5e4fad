#include "core/data/stories/words.h"

namespace forge::data::stories {

const std::vector<WordList>& qualities() {
  static const std::vector<WordList> lists = {
      {"colour", WordKind::adjective,
       {"red", "blue", "green", "yellow", "white", "black", "brown", "grey", "purple", "pink",
        "orange", "scarlet", "crimson", "turquoise", "lilac", "cream", "indigo", "maroon",
        "emerald", "amber", "navy", "tan", "rosy", "pale"}},
      {"trait", WordKind::adjective,
       {"kind", "brave", "clever", "patient", "careful", "quiet", "cheerful", "honest", "strong",
        "quick", "curious", "gentle", "polite", "stubborn", "shy", "wise", "bold", "generous",
        "thoughtful", "lively", "friendly", "helpful", "loyal", "modest", "calm", "neat", "tidy",
        "hardworking", "sensible", "merry", "steady", "proud", "funny", "lucky", "nimble",
        "observant", "obedient", "imaginative", "playful", "trustworthy", "reliable", "watchful",
        "witty", "forgetful", "dreamy", "talkative", "fair", "sturdy", "tall", "young", "swift",
        "graceful", "cautious", "daring", "humble", "inventive", "jolly", "mischievous", "restless",
        "warm-hearted"}},
      {"feeling", WordKind::adjective,
       {"happy", "glad", "sad", "tired", "excited", "worried", "hungry", "proud", "surprised",
        "pleased", "nervous", "grateful", "lonely", "sorry", "sleepy", "ashamed", "thirsty", "cross",
        "cold", "afraid", "angry", "anxious", "bored", "confused", "delighted", "disappointed",
        "eager", "embarrassed", "frightened", "hopeful", "impatient", "jealous", "joyful", "puzzled",
        "relieved", "satisfied", "startled", "thankful", "unhappy", "upset", "weary", "uneasy",
        "content", "amused", "homesick"}},
      {"look", WordKind::adjective,  // of things
       {"small", "old", "new", "shiny", "big", "pretty", "long", "round", "heavy", "light",
        "smooth", "beautiful", "dusty", "fine", "soft", "strange", "plain", "simple",
        "thin", "thick", "narrow", "wide", "sharp", "square", "crooked", "rough", "bright", "striped",
        "spotted", "tiny", "precious", "rusty", "fancy", "delicate", "curved", "hollow",
        "painted", "polished", "lovely", "ancient", "battered", "dainty", "elegant", "faded",
        "flat", "fragile", "handsome", "odd", "quaint", "rare", "ragged",
        "slender", "sparkling", "splendid", "stout", "unusual", "handmade", "clumsy"}},
      {"weather", WordKind::adjective,
       {"sunny", "warm", "cold", "rainy", "windy", "bright", "grey", "snowy", "foggy", "cool",
        "stormy", "hot", "clear", "frosty", "cloudy", "misty", "damp", "mild", "chilly", "wet",
        "dry", "golden", "gloomy", "breezy", "icy", "drizzly", "crisp"}},
      {"taste", WordKind::adjective,
       {"sweet", "warm", "fresh", "delicious", "crisp", "juicy", "ripe", "salty", "spicy", "sour",
        "creamy", "crunchy", "tasty", "sticky", "buttery", "bitter", "tender", "hot", "fluffy",
        "sugary", "rich", "golden"}},
      {"nature_look", WordKind::adjective,
       {"tall", "green", "wild", "small", "wet", "dark", "deep", "high", "low", "quiet", "lonely",
        "steep", "mossy", "muddy", "sandy", "shallow", "shady", "rocky", "leafy", "grassy", "broad",
        "distant", "hidden", "peaceful", "silent", "frozen", "misty", "thorny", "tangled", "winding",
        "empty", "gentle", "great"}},
      {"manner", WordKind::plain,
       {"quietly", "slowly", "quickly", "carefully", "softly", "gently", "happily", "kindly",
        "proudly", "suddenly", "calmly", "politely", "bravely", "firmly", "eagerly", "patiently",
        "cheerfully", "loudly", "sadly", "gladly", "thoughtfully", "seriously", "warmly",
        "nervously", "shyly", "sleepily", "boldly", "briskly", "anxiously", "cautiously", "crossly",
        "dreamily", "earnestly", "faintly", "gracefully", "gratefully", "gravely", "hopefully",
        "hastily", "honestly", "impatiently", "joyfully", "lightly", "merrily", "neatly",
        "solemnly", "steadily", "sternly", "stubbornly", "swiftly", "tenderly", "tightly",
        "wearily", "wisely", "curiously", "hoarsely", "playfully", "modestly"}},
      {"often", WordKind::plain,
       {"always", "often", "sometimes", "usually", "never", "rarely", "seldom"}},
  };
  return lists;
}

}  // namespace forge::data::stories
