#include "core/data/stories/words.h"

namespace forge::data::stories {

const std::vector<WordList>& nature() {
  static const std::vector<WordList> lists = {
      {"pet", WordKind::noun,
       {"cat", "dog", "puppy", "kitten", "rabbit", "pony", "hamster", "parrot", "tortoise", "lamb",
        "guinea pig", "canary", "terrier", "spaniel", "duckling", "goldfish", "ferret", "kid goat",
        "donkey", "collie", "mule", "chick"}},
      {"farm_animal", WordKind::noun,
       {"cow", "horse", "sheep", "goat", "pig", "hen", "goose", "duck", "rooster", "calf", "bull",
        "turkey", "ox", "piglet", "foal", "ram", "gander", "mare", "llama", "ewe"}},
      {"wild_animal", WordKind::noun,
       {"fox", "squirrel", "hedgehog", "deer", "mouse", "frog", "badger", "hare", "otter", "mole",
        "toad", "bear", "wolf", "beaver", "bat", "weasel", "lizard", "snake", "raccoon", "newt",
        "seal", "turtle", "chipmunk", "stoat", "marten", "salamander", "vole", "shrew", "moose",
        "dormouse", "crab", "trout", "porcupine", "rat"}},
      {"bird", WordKind::noun,
       {"robin", "sparrow", "crow", "owl", "blackbird", "swallow", "pigeon", "magpie", "seagull",
        "thrush", "wren", "finch", "heron", "kingfisher", "lark", "nightingale", "raven", "swan",
        "woodpecker", "cuckoo", "dove", "eagle", "falcon", "hawk", "jay", "jackdaw", "partridge",
        "pheasant", "quail", "starling", "stork", "swift", "wagtail", "pelican"}},
      {"insect", WordKind::noun,
       {"bee", "butterfly", "ant", "beetle", "spider", "snail", "ladybird", "dragonfly", "moth",
        "cricket", "grasshopper", "worm", "caterpillar", "wasp", "firefly", "fly", "gnat",
        "bumblebee", "earwig", "slug"}},
      {"tree", WordKind::noun,
       {"oak", "apple tree", "willow", "pine", "birch", "chestnut tree", "maple", "cherry tree",
        "elm", "beech", "ash tree", "walnut tree", "cedar", "poplar", "plum tree", "holly bush",
        "hawthorn", "rose bush", "hazel bush", "fir", "larch", "linden", "pear tree", "rowan",
        "spruce", "sycamore", "yew", "lilac bush", "hedge", "juniper"}},
      {"flower", WordKind::noun,
       {"rose", "daisy", "tulip", "sunflower", "violet", "poppy", "lily", "daffodil", "buttercup",
        "bluebell", "primrose", "dandelion", "iris", "marigold", "snowdrop", "pansy", "carnation",
        "crocus", "foxglove", "geranium", "hyacinth", "lupin", "orchid", "peony", "petunia",
        "dahlia", "forget-me-not", "aster", "begonia", "cornflower", "snapdragon"}},
      {"landscape", WordKind::noun,
       {"hill", "river", "meadow", "stream", "forest", "pond", "field", "lake", "valley", "path",
        "bridge", "cliff", "beach", "cave", "island", "waterfall", "marsh", "mountain", "hollow",
        "glade", "spring", "canal", "shore", "bay", "dune", "ridge", "grove", "heath", "thicket",
        "ravine", "pasture", "hillside", "clearing", "lagoon", "crossroads", "rock pool", "harbour"}},
      {"found", WordKind::noun,  // small things that nature leaves about
       {"stone", "leaf", "pebble", "acorn", "pine cone", "twig", "nest", "egg", "mushroom", "cobweb",
        "footprint", "puddle", "icicle", "snowflake", "seed", "berry", "root", "branch", "petal",
        "thorn", "bud", "fern", "blade of grass", "lump of clay", "piece of bark", "tuft of wool",
        "burrow", "log", "stump", "toadstool", "clump of moss", "conker", "fossil", "crystal"}},
      {"scent", WordKind::plain,
       {"hay", "fresh bread", "rain", "smoke", "pine", "mint", "lavender", "salt", "honey", "thyme",
        "wet earth", "roses", "coffee", "sawdust", "wax", "cinnamon", "jasmine", "leather", "moss",
        "seaweed", "tar", "vanilla", "rosemary", "cloves", "cut grass"}},
      {"body", WordKind::noun,
       {"hand", "arm", "foot", "knee", "finger", "nose", "ear", "shoulder", "elbow", "leg", "thumb",
        "toe", "ankle", "wrist", "cheek", "chin", "heel", "eyebrow", "palm", "neck", "back",
        "forehead"}},
  };
  return lists;
}

}  // namespace forge::data::stories
