#include "core/data/stories/rules.h"

namespace forge::data::stories {

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
