#include "core/data/stories/story_grammar.h"

namespace forge::data::stories {

const std::vector<VariableText>& variables() {
  static const std::vector<VariableText> all = {// people
                                                {"A", "child"},
                                                {"B", "child"},
                                                {"D", "child"},
                                                {"C", "elder"},
                                                {"E", "elder"},
                                                {"job1", "occupation"},
                                                {"trait1", "trait"},
                                                {"trait2", "trait"},
                                                {"pet1", "pet"},
                                                {"pet1_name", "pet_name"},
                                                {"age1", "age"},
                                                // things
                                                {"x", "thing"},
                                                {"y", "thing"},
                                                {"look1", "look"},
                                                {"colour1", "colour"},
                                                {"tool1", "tool"},
                                                {"tool2", "tool"},
                                                {"part1", "part"},
                                                {"part2", "part"},
                                                {"trimming1", "trimming"},
                                                {"material1", "material"},
                                                {"carrier1", "carrier"},
                                                {"buildable1", "buildable"},
                                                {"vehicle1", "vehicle"},
                                                {"dish1", "dish"},
                                                {"fruit1", "fruit"},
                                                {"vegetable1", "vegetable"},
                                                {"flower1", "flower"},
                                                {"found1", "found"},
                                                {"wild1", "wild_animal"},
                                                {"bird1", "bird"},
                                                {"hoarder1", "hoarder"},
                                                {"hoard1", "hoard"},
                                                // times, numbers and places
                                                {"day1", "day"},
                                                {"day2", "day"},
                                                {"month1", "month"},
                                                {"season1", "season"},
                                                {"hour1", "hour"},
                                                {"n1", "number"},
                                                {"n2", "number"},
                                                {"n3", "number"},
                                                {"village1", "village"},
                                                {"building1", "building"},
                                                {"building2", "building"},
                                                {"crossing1", "crossing"},
                                                {"tree1", "tree"},
                                                {"room1", "room"},
                                                {"festival1", "festival"},
                                                // what was done or said
                                                {"play1", "play"},
                                                {"task1", "task"},
                                                {"task2", "task"},
                                                {"sneak1", "sneak"},
                                                {"skill1", "skill"},
                                                {"subject1", "subject"},
                                                {"game1", "game"},
                                                {"lesson1", "lesson"},
                                                {"hidden_at", "hiding_place"},
                                                {"den", "sleeping_place"},
                                                {"noise_at", "dark_place"},
                                                {"went_to", "destination"},
                                                {"seen", "sight"},
                                                {"occasion1", "occasion"},
                                                {"message1", "message"}};
  return all;
}

const std::vector<RuleText>& common_rules() {
  static const std::vector<RuleText> rules = {
      // Facts: expanded once a story through the variables above.
      {"hiding_place",
       {"in the {container} [under|beside|behind] the {furniture}",
        "in the {colour} {container} in the {room1}",
        "behind the {furniture} in the {room1}",
        "under the {tree1} by the {landscape}",
        "at the bottom of the {look} {container}",
        "between the {furniture} and the wall",
        "under the loose board in the {room1}",
        "on the highest shelf of the {room1}",
        "in the pocket of {colour.a} {clothing}",
        "beneath {number} {look} {clothing.s} in the {container}"}},
      {"sleeping_place",
       {"under the {furniture} in the {room1}",
        "behind the {furniture}",
        "in {material.a} {carrier} beside the {furniture}",
        "on {colour.a} blanket in the {room1}",
        "in the straw of the stable",
        "on an old {clothing}",
        "between the {container} and the {furniture}",
        "on the steps of the {room1}"}},
      {"dark_place",
       {"behind the {furniture}",
        "in the {room1}",
        "under the stairs",
        "at the foot of the stairs",
        "beside the {furniture} in the {room1}",
        "under the {furniture}"}},
      {"destination",
       {"to the {building1}",
        "down to the {crossing1}",
        "across the {crossing1}",
        "up to the old {building1}",
        "over to the {nature_look} {crossing1}",
        "over the {crossing1} to the {building1}"}},
      {"sight",
       {"{number} {bird.s} on {tree.a}",
        "{look.a} {vehicle} full of {vegetable.s}",
        "{wild_animal.a} with {number} young ones",
        "{number} {farm_animal.s} in the {crossing}",
        "{bird.a} [building a nest|with a broken wing|on a fence]",
        "{colour.a} cloud shaped like {thing.a}",
        "{trait.a} {occupation} with {colour.a} {clothing}",
        "{number} {insect.s} on {flower.a}",
        "{pet.a} asleep [on|under] {vehicle.a}",
        "{number} {occupation.s} carrying {tool.a}",
        "the footprints of {wild_animal.a}",
        "{colour.a} {flower} between the {found.s}",
        "{number} {water_animal.s} in the {water}"}},
      {"occasion",
       {"at the {festival}",
        "after the {event}",
        "on the first day of {season}",
        "last {season}",
        "in {month}",
        "on {weather.a} {day}",
        "before the {event}"}},
      {"message",
       {"the {festival} begins at {hour}",
        "the {vehicle} leaves at {hour} on {day}",
        "{number} {dish.s} are ready at the {building}",
        "the {occupation} is coming on {day}",
        "the {pet} is safe in the {room}",
        "the {look} {thing} is mended",
        "the {event} will be at the {building}",
        "the bridge near the {building} is closed",
        "there will be {dish.s} and {drink} for everyone"}},
      {"age", {"six", "seven", "eight", "nine", "ten", "eleven", "twelve"}},

      // Openings: who and where.
      {"meet_A",
       {"In {village1}, near the {landscape}, there lived {trait.a} {A.girl} [named|called] {A}.",
        "{A} was {trait.a} {A.girl} who lived [beside|behind|near] the {building} in {village1}.",
        "There was once a {A.girl} called {A}, and nobody in {village1} was {trait.er}.",
        "Once upon a time, in the village of {village1}, {A} lived next door to {C}.",
        "{A} lived with {A.his} {family} in a [small|narrow|little|quiet|crowded] house by the "
        "{landscape}.",
        "{A} was the {trait.est} {A.girl} in {village1}, and {A.he} knew it.",
        "[Long ago|Not long ago|Some years ago] {A} lived in {village1}, where the {tree.s} are "
        "taller than the houses.",
        "{A} was {age1} years old and wanted to {skill}."}},
      {"meet_B",
       {"{A.his} best friend was {B}, who was {trait2.er} than anyone else at school.",
        "{A} had a friend named {B}, {trait2.a} {B.girl} with {colour.a} {clothing}.",
        "{B}, the {B.daughter} of the {occupation}, was {A.his} friend.",
        "{B} lived across the {crossing} and was {A.his} {schoolmate}.",
        "{A} and {B} had been friends since they both fell into the "
        "[pond|stream|river|canal|lake]."}},
      {"when",
       {"one {weather} {daytime}",
        "early one {daytime}",
        "one {daytime} in {month1}",
        "on the first {weather} day of {season1}",
        "one {weather} {day1} in {month1}",
        "late in {month1}",
        "one {season1} {daytime}",
        "on {weather.a} {day1}"}},
      {"until",
       {"the sun went down",
        "it was time for supper",
        "the bell of the {building} rang {hour}",
        "{weather_change}",
        "they were both {weary} and {weary}",
        "{elder} called them home",
        "the {bird.s} went to sleep"}},
      {"habit",
       {"Every {daytime} {A.he} {task.ed}, and then {A.he} {intend.ed} to {play}.",
        "{A} liked {task.ing} better than {task.ing}, but {A.he} liked {play.ing} best of all.",
        "\"{A} {often} {task.s} before breakfast,\" {A.his} {family} used to say.",
        "On {day}s {A.he} {task.ed}, and on {day}s {A.he} {play.ed} with the {schoolmate.s} from "
        "school.",
        "{A.he} could {skill}, but {A.he} could not {skill}."}},

      // Small pieces.
      {"said_A",
       {"said {A}",
        "said {A}",
        "{say.ed} {A}",
        "{A} [said|answered|replied] {tone}",
        "[said|answered|called] {A} {tone}"}},
      {"said_B",
       {"said {B}",
        "said {B}",
        "{say.ed} {B}",
        "{B} [said|answered|replied] {tone}",
        "[said|answered|called] {B} {tone}"}},
      {"said_C",
       {"said {C}",
        "said {C}",
        "{say.ed} {C}",
        "{C} [said|answered|replied] {tone}",
        "[said|answered|called] {C} {tone}"}},
      {"said_D",
       {"said {D}",
        "said {D}",
        "{say.ed} {D}",
        "{D} [said|answered|replied] {tone}",
        "[said|answered|called] {D} {tone}"}},
      {"moved_A",
       {"{A} {move.ed} {pace}",
        "{A} {move.ed}",
        "{pace} {A} {move.ed}",
        "{A} began to {move}",
        "{A} was soon {move.ing}"}},
      {"glad_A",
       {"{A} {gesture.ed}.",
        "{A} {gesture.ed} and {gesture.ed}.",
        "{A} felt {glad}.",
        "{A} could not help {gesture.ing}.",
        "{A} was {glad} and a little {weary}.",
        "{A} had never been so {glad}.",
        "\"{A} {gesture.s} all day,\" said {A.his} {family}.",
        "{A} was {glad.er} than ever before.",
        "It was the {glad.est} day of {A.his} life."}},
      {"upset_A",
       {"{A} {worry.ed}.",
        "{A} {worry.ed} and {worry.ed}.",
        "{A} felt {upset}.",
        "{A} could not help {worry.ing}.",
        "{A} was {upset} and a little {weary}.",
        "{A} had never been so {upset}.",
        "\"Who {worry.s} like that?\" asked {C}.",
        "{A} tried not to {worry}.",
        "Nobody had ever {worry.en} like {A}."}},

      // Endings.
      {"moral",
       {"{A} {gesture.ed}, for now {A.he} knew that {lesson1}.",
        "And {C} said that {lesson1}.",
        "\"You see,\" {said_C}, \"{lesson}.\"",
        "From that day on, {A} [always|often] remembered that {lesson1}.",
        "That {daytime} {A} wrote in a notebook: \"{lesson}.\"",
        "{glad_A}",
        ""}},
      {"tell_seen",
       {"\"What did you see on the way?\" asked {C}. \"{seen},\" {said_A}.",
        "{A} told {C} about {seen}.",
        "And that night {A} dreamed of {seen}.",
        "",
        ""}},
      {"evening",
       {"In the evening they sat by the {furniture} and talked about {play.ing}.",
        "Then {weather_change}, and everyone went home {glad}.",
        "{A} slept well that night, and the {bird.s} {bird_act.ed} outside.",
        "They were a little {weary}, but nobody was {upset}.",
        ""}},
  };
  return rules;
}

const std::vector<RuleText>& scene_rules() {
  static const std::vector<RuleText> rules = {
      // Scenes: what happens around the story.
      {"scene",
       {"{scene_nature}",
        "{scene_nature}",
        "{scene_work}",
        "{scene_work}",
        "{scene_home}",
        "{scene_road}",
        "{scene_town}",
        "{scene_meal}"}},
      {"scene_nature",
       {"The air smelled of {scent} and {scent}. {bird.a} {bird_act.ed} in the {tree}, and "
        "{number} {farm_animal.s} {herd_act.ed} beside the {landscape}.",
        "It was {weather.er} than the day before. {insect.s} {insect_act.ed} among the {flower.s}, "
        "and under the {tree_look} {tree.s} {wild_animal.a} was {creature_act.ing}.",
        "Between the {found.s} grew {flower.s} and {flower.s}. \"{bird.a} {often} {bird_act.s} "
        "here,\" {said_A}, but today there was only {insect.a}, which {insect_act.ed}.",
        "The {crossing.s} were {nature_look}, and the {tree.s} stood {tree_look} and {tree_look}. "
        "Somewhere {bird.s} were {bird_act.ing}.",
        "{number} {bird.s} [flew|circled|soared|rose] over the {nature_look} {crossing}. {A} "
        "picked up {found.a} and {number} {found.s} and put them into {colour.a} {bag}.",
        "Then {weather_change}, and the {bird.s} stopped {bird_act.ing}. The {wild_animal.s} "
        "{creature_act.ed} in the {nature_look} {landscape}.",
        "{farm_animal.s} and {farm_animal.s} were {herd_act.ing} together, because "
        "{weather_change}. \"{farm_animal.s} {herd_act} before it rains,\" {said_A}.",
        "The path became {nature_look.er}. It was the {nature_look.est} place that {A} had ever "
        "seen, and {water_animal.s} lived in its {water.s}.",
        "In the {water} swam {water_animal.a}. {insect.s} {insect_act.ed} above it, and "
        "{wild_animal.a} {creature_move.ed} into the [grass|reeds|ferns|bushes]. \"It "
        "{creature_act.s} there all day,\" {said_A}.",
        "{wild_animal.a} had {creature_act.en} under the {tree_look} {tree}. Now it "
        "{creature_move.ed} away, and the {bird.s} that had {bird_act.en} above it were still."}},
      {"scene_work",
       {"{elder}, {occupation.a}, was {task.ing}, and the {occupation.s} of {village1} {task.ed} "
        "too.",
        "In the {building} people were {task.ing}. {elder} had already {task.en} and wanted to "
        "{task}.",
        "\"First we {task},\" said the {occupation}, \"and then we {task}.\" {A} helped until "
        "{A.his} {limb.s} were {weary}.",
        "The {occupation} {often} {task.s} on a {day}, so the {building} was empty and the "
        "{tool.s} hung on the wall.",
        "All the {occupation.s} and {occupation.s} had come. One of them {task.ed}, another "
        "{task.ed}, and a third {gesture.ed}.",
        "{A} had {task2.en} since {hour}, and {A.his} {limb} hurt. \"Who {task2.s} all day needs "
        "{dish.a},\" said {elder}.",
        "There were {tool.s} and {part.s} everywhere, for the {relation} of the {occupation} had "
        "{task.en} there.",
        "{elder} needed {tool.a}, {number} {part.s} and {trimming.a}. \"If you {mend_act} it "
        "today,\" said the {occupation}, \"it will hold until {month}.\""}},
      {"scene_home",
       {"The {room} was {weather}, and the {furniture.s} were covered with {clothing.s}. On "
        "{material.a} {furniture} stood {look.a} {thing} and {number} {thing.s}.",
        "{A} wore {colour.a} {clothing} with {number} {trimming.s} on it. {A.his} {family} had "
        "{touch} {mend_act.en} them there.",
        "In the {room} there were {number} {container.s}, the {look.est} {thing} in {village1} and "
        "{look.a} {furniture}.",
        "The {family.s} of {village1} loved {game}. They {gesture.ed}, {gesture.ed} and played it "
        "in their {room.s} until {until}.",
        "{A} {wiped} the {furniture} and looked at the {thing.s}. {A.his} {family} {often} "
        "{care.s} them and {keeps_them}.",
        "{pet.s} were {creature_act.ing} under the {furniture}. {A} rubbed {A.his} {face} and put "
        "on {colour.a} {clothing}."}},
      {"keeps_them",
       {"never breaks one",
        "puts them back",
        "counts them twice",
        "keeps them in {material.a} {carrier}"}},
      {"scene_road",
       {"{vehicle.a} full of {fruit.s} rolled by. The driver, {trait.a} {occupation}, {gesture.ed} "
        "and lifted one hand.",
        "The road led past the {building} and over the {crossing}. {vehicle.s} and {vehicle.s} "
        "stood there, and {trait.a} {relation} was {gesture.ing}.",
        "{A} had hurt {A.his} {limb} while {play.ing}, so {A.he} {move.ed} {pace}.",
        "{number} {relation.s} were {move.ing} along the {crossing}. \"We {move} here every "
        "{day},\" they said, \"and our {pet} {creature_move.s} behind us.\"",
        "It was {number} miles to {village}. {A} had {move.en} there once with {elder}, {pace} and "
        "in {weather} weather.",
        "{trait.a} {relation} {move.s} from {village} to {village} every {season}. Today {A} met "
        "{wild_animal.a} instead, {creature_move.ing} along the {crossing}."}},
      {"scene_town",
       {"In {village1} the {building.s} were open. People {trade.ed} {vegetable.s}, {trade.ed} "
        "{clothing.s} and talked about the {festival}.",
        "The {festival.s} and {event.s} of {village1} were famous. There were {dish.s} for "
        "everyone, and the {schoolmate.s} of {A} {play.ed}.",
        "{elder} was {trade.ing} {fruit.s}. \"Whoever {trade.s} {vegetable.s} here comes back,\" "
        "said the {occupation}, who had {trade.en} many.",
        "At the {building} some children were {play.ing}. One of them {play.s} there every {day} "
        "and is never bored.",
        "The {occupation} wanted to {trade} {carrier.s}, {bag.s} and {tool.s}. \"My {buildable} is "
        "full of {carrier.s},\" said {trait.a} {relation}."}},
      {"scene_meal",
       {"They drank {drink} and ate {taste} {dish.s} under {tree.a}. The {fruit.s} were {taste.er} "
        "than the {vegetable.s}.",
        "There was {drink} with {taste.a} {dish}, and {number} {fruit.s} for each of them. It was "
        "the {taste.est} meal of the {season}.",
        "{A} had brought {dish.a} and {fruit.a} in {material.a} {carrier}. {elder} {gesture.ed} "
        "and said that nothing was {taste.er}."}},
      {"wiped", {"wiped", "dusted", "cleaned", "polished"}},
  };
  return rules;
}

}  // namespace forge::data::stories
