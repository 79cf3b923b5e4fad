#include "core/data/stories/rules.h"

namespace forge::data::stories {

const std::vector<RuleText>& doing_plots() {
  static const std::vector<RuleText> rules = {
      // Shopping by a list, and the account of it.
      {"plot_market", {"{meet_A} {market_list}\n\n{market_there}\n\n{market_home}"}},
      {"market_list",
       {"{when}, {C} gave {A.him} {material1.a} {carrier1} and a list: {n1} {fruit1.s}, {n2} "
        "{vegetable1.s} and {x.a}. \"Bring them before {hour1},\" {said_C}, \"because the "
        "{festival1} is on {day1}.\"",
        "\"We need {n1} {fruit1.s} and {n2} {vegetable1.s},\" {said_C}, \"and {x.a} for the "
        "{festival1}. Can you be back at {hour1}?\" \"Yes,\" {said_A}, and took the {material1} "
        "{carrier1}."}},
      {"market_there",
       {"At the market {A} met {B}, who was {trade.ing} {clothing.s}. {A} "
        "[bought|chose|ordered|paid for] the {fruit1.s} first. They were {taste}, and the "
        "{taste.est} one lay on top. Then {A.he} [bought|chose|picked out] the {vegetable1.s}. "
        "{scene} On the way home {A.he} saw {seen}.",
        "{scene_town} The {occupation} had {taste} {fruit1.s}, and {A} counted them twice: {n1}. "
        "The {vegetable1.s} cost {n3} coins. Then {B} came and wanted to {play1}, and they "
        "{play1.ed} until {until}."}},
      {"market_home",
       {"At home {C} looked into the {carrier1}. \"{n1} {fruit1.s}, {n2} {vegetable1.s}. But where "
        "is the {x}?\" {upset_A} \"I forgot it,\" said {A}, and {A.he} {move.ed} back. At {hour1} "
        "the {x} stood on the table. {tell_seen} {moral}",
        "\"How many {vegetable1.s} did you bring?\" asked {C}. \"{n2},\" {said_A}, \"and {n1} "
        "{fruit1.s}.\" \"And the {x} for the {festival1}?\" \"It is in the {carrier1},\" {said_A}. "
        "It was not yet {hour1}. {evening} {moral}",
        "{C} unpacked everything. There was the {x}, there were {n2} {vegetable1.s}, but there "
        "were not {n1} {fruit1.s}. \"Where is the last one?\" asked {C}. {A} {worry.ed}. \"It was "
        "too {taste},\" {A.he} said. {C} laughed. {moral}"}},

      // Something is built with what others lend, and all goes back.
      {"plot_build",
       {"{meet_A} {A.he} {intend.ed} to build {buildable1.a} for the {festival1}. It needed {n1} "
        "{part1.s} and {n2} {part2.s}. {build_lent}\n\n{build_work}\n\n{build_end}"}},
      {"build_lent",
       {"{B} lent {A.him} {tool1.a}, and {C}, the {job1}, lent {A.him} {tool2.a}. The {part1.s} "
        "came from the {building1}.",
        "{A} had no tools. From {B} {A.he} got {tool1.a}. From {C} {A.he} got {tool2.a}, but only "
        "until {day1}, for {C} was {job1.a} and needed it."}},
      {"build_work",
       {"In the {room1} {A} {mend_act.ed} the {part1.s} to the boards and {mend_act.ed} the "
        "{part2.s} under them. {B} held the lamp, and {D} was {mend_act.ing} {part.a} at the back. "
        "[{scene}|{glad_A}]",
        "First {A.he} {mend_act.ed} {part.a}, then {A.he} {mend_act.ed} the {part1.s}. \"Whoever "
        "{mend_act.s} {part.s} so {touch} is {job1.a},\" {said_C}. But one of the {n2} {part2.s} "
        "broke, and {A} had to {mend_act} a new one. {scene}",
        "For {n3} days there was noise in the {room1}. {A} had {mend_act.en} all {n1} {part1.s} "
        "when {weather_change}. {A.he} painted everything {colour1}. {glad_A}"}},
      {"build_end",
       {"When the {buildable1} was ready, {A} cleaned the tools. \"Whose {tool1} is this?\" asked "
        "{D}. \"It is {B}'s,\" {said_A}, \"and the {tool2} goes back to {C}.\" Only then did they "
        "ride to the {festival1}. {moral}",
        "On {day1} {A} brought the {tool2} to {C} and the {tool1} to {B}. Then the {buildable1} "
        "came out of the {room1}. It had {n1} {part1.s}, and it did not break. At the {festival1} "
        "everybody {gesture.ed}. {moral}"}},

      // An animal is found, named and claimed.
      {"plot_animal",
       {"{meet_A} {when}, {weather_change}. {animal_found}\n\n{animal_kept}\n\n{animal_end}"}},
      {"animal_found",
       {"{A} heard a sound behind the {building1}. There sat {colour1.a} {pet1}, wet and {weary}, "
        "with {colour.a} ribbon around its neck. {A.he} took it home and called it {pet1_name}.",
        "Under {tree.a} near the {landscape} {A} found {colour1.a} {pet1}. Its "
        "[leg|ear|paw|foot|back] was hurt. {A} tied a [scarf|ribbon|handkerchief|shawl|sock] "
        "around it. \"I will call you {pet1_name},\" {A.he} said.",
        "At the {landscape} {colour1.a} {pet1} was {creature_act.ing} all alone. It "
        "{creature_move.ed} after {A} to the door and would not leave. {A} named it {pet1_name} "
        "and {gesture.ed}."}},
      {"animal_kept",
       {"{pet1_name} slept {den} and {creature_act.ed} every {daytime}. {A} gave it "
        "[milk|water|broth] and {dish.a}. {scene} After {n1} days {pet1_name} was {trait} and "
        "{trait}.",
        "{pet1_name} liked {vegetable1.s}, but not {fruit.s}. At night it lay {den}. When {A} "
        "{task.ed}, {pet1_name} {creature_act.ed} beside {A.him}. [{scene}|{habit}]"}},
      {"animal_end",
       {"On {day1} {C} knocked at the door. \"I have lost {colour1.a} {pet1},\" {C.he} said. {A} "
        "grew {upset}. {pet1_name} lay {den} and looked up. The {pet1} {creature_move.ed} "
        "to {C} at once. \"You may visit it every {day2},\" {said_C}. And every {day2} {A} went to "
        "see {pet1_name}. {moral}",
        "\"Does the {pet1} belong to someone?\" asked {B}. They asked in the {building.s} and at "
        "the {building2}, but nobody had lost {colour1.a} {pet1}. So {pet1_name} stayed. \"Where "
        "is it now?\" asked {B} on {day1}. \"{den},\" {said_A}, \"as always.\" {moral}",
        "One night {pet1_name} was gone. {A} called and {move.ed} over the {crossing}. But in the "
        "morning {pet1_name} lay {den}, and beside it {n2} young ones, all {colour1}. {A} "
        "{gesture.ed}. \"Now you have to find {n2} names,\" {said_C}. {moral}"}},

      // Something vanishes in the night; the tracks tell.
      {"plot_mystery",
       {"{meet_A} {C}, the {job1}, kept {fruit1.s} in {material1.a} {carrier1} in the {room1}. "
        "{when}, {n1} of them were gone. The next day it was {n2}. \"Who takes my {fruit1.s}?\" "
        "asked {C}.\n\n{mystery_watch}\n\n{mystery_end}"}},
      {"mystery_watch",
       {"\"It was {B},\" said {D}. \"{B} likes {fruit1.s}.\" But {B} had been in {village} since "
        "{day1}. {A} looked at the floor {touch}. There was {found1.a}, and there were the tracks "
        "of {wild1.a}. {scene}",
        "{A} and {B} hid behind the {furniture} and waited. {weather_change}. At {hour1} something "
        "{creature_move.ed} through the {room1}. It left {found1.a} behind. \"I know who it is,\" "
        "{said_B}. [{scene}|{upset_A}]"}},
      {"mystery_end",
       {"At night they followed the tracks to the {landscape}. There {wild1.a} was feeding {n3} "
        "young ones with {fruit1.s}. \"They are hungry,\" {said_A}. So {C} put {number} {fruit1.s} "
        "under the {tree1} each evening, and the {material1} {carrier1} stayed full. \"Was it "
        "{B}?\" asked {D}. \"No,\" {said_A}, \"it was {wild1.a}.\" {moral}",
        "\"The thief is {wild1.a},\" {said_A}. \"Only {wild1.a} leaves {found1.a} behind.\" {C} "
        "closed the {carrier1} and {gesture.ed}. But every {day2} {A} took some {fruit1.s} to the "
        "{landscape}, and {wild1.a} was waiting there. {moral}"}},

      // Two rivals and what each of them is good at.
      {"plot_contest",
       {"{meet_A} {A.he} was {trait1.er} than {B}, but {B} was {trait2.er} than {A}. On {day1} "
        "there was a race at the {festival1}: from the {building1} over the {crossing1} to the "
        "{tree1}. The prize was {look1.a} {x}.\n\n{contest_run}\n\n{contest_end}"}},
      {"contest_run",
       {"At {hour1} {C} waved {colour.a} {clothing}, and they ran. {A} was first at the "
        "{crossing1}. There {A.he} [fell over|slipped on|stopped beside] {found.a}. {scene} {B} "
        "{move.ed} past {pace}.",
        "{B} was first at the {crossing1}, because {A} had stopped to look at {seen}. [{scene}|] "
        "Then [a thick fog came up from the {water}|it began to snow|it rained so hard that the "
        "road disappeared], and neither could see the other any more."}},
      {"contest_end",
       {"At the {tree1} {B} stood still and waited. \"Why did you not go on?\" asked {A}. "
        "\"Because we started together,\" {said_B}. So they won together. The {x} stands one week "
        "with {A} and one week with {B}. \"{A} is {trait1.er},\" {said_C}, \"and {B} is "
        "{trait2.er}, but together you are the {trait.est} of all.\"",
        "{A} reached the {tree1} first and got the {look1} {x}. {B} {gesture.ed}. \"You are "
        "{trait1.er},\" {B.he} said. \"But you are {trait2.er},\" {said_A}, \"and next {day1} we "
        "will play {game1}.\" {moral}",
        "{B} touched the {tree1} first. {C} gave {B.him} the {x}, which was {look1} and {look}. "
        "{A} was {upset}, but not for long. \"Show me how you did it,\" {A.he} said, for {A.he} "
        "was the {trait1.est} loser of {village1}. {moral}"}},

      // Planting, waiting, sharing.
      {"plot_garden",
       {"{meet_A} In {month1} {C} gave {A.him} {n1} seeds. \"Will they be {flower1.s} or "
        "{vegetable1.s}?\" asked {A}. {garden_answer}\n\n{garden_wait}\n\n{garden_end}"}},
      {"garden_answer",
       {"\"Wait and see,\" {said_C}. \"But promise to water them every {day1}.\" {A} planted them "
        "under the {tree1} and put {found.a} on top.",
        "{C} only {gesture.ed}. \"They need water every {day1},\" {C.he} said, \"and somebody who "
        "is patient.\" {A} planted them behind the {building1}, beside the {tree1}."}},
      {"garden_wait",
       {"For {n2} weeks nothing happened. {B} {worry.ed}. \"Perhaps {wild1.a} has eaten them,\" "
        "{said_B}. But every {day1} {A} came with the water. {scene}",
        "It was {weather} for {n2} weeks, and then {weather.er} still. Once {A} wanted to dig them "
        "up, but {B} said: \"It is {day1}. Give them water and wait.\" [{scene}|{habit}]"}},
      {"garden_end",
       {"Then one {daytime} {A} found {n1} green leaves under the {tree1}. In {month} they were "
        "{flower1.s}, taller than {B}. {A} cut {n3} of them and brought them to {C}. \"So they "
        "were not {vegetable1.s},\" {said_B}. {moral}",
        "In {month} there were so many {vegetable1.s} that {A} gave {n3} to {C} and {n2} to {B}. "
        "\"And I hoped for {flower1.s},\" {said_A}. \"You cannot make soup of {flower1.s},\" "
        "{said_C}. They {gesture.ed} and made {dish.a}. {moral}"}},

      // Fear of a sound, and what it was.
      {"plot_night",
       {"{meet_A} {meet_B} {when}, {B} came to stay. "
        "{night_sound}\n\n{night_look}\n\n{night_end}"}},
      {"night_sound",
       {"They played {game1} until {until} and then lay down in the {room1}. At "
        "[midnight|one|two|three|four] {B} woke up. Something {noise_at} was {creature_act.ing}. "
        "\"Did you hear that?\" whispered {B}. \"It is {wild1.a},\" {said_A}. \"Or a thief,\" "
        "{said_B}.",
        "In the evening they {task1.ed} and ate {dish1.s}. In the middle of the night there was a "
        "noise {noise_at}. {B} was {upset}. \"Perhaps it is {wild1.a},\" {said_A}. \"{wild1.a} "
        "does not knock,\" {said_B}."}},
      {"night_look",
       {"{A} took the lamp, and {B} took {tool.a}. They {sneak.ed} {pace} past the {furniture} and "
        "the {container.s}. {weather_change}. Their {limb.s} trembled. [{scene_home}|{upset_A}]",
        "\"One of us must look,\" {said_B}. \"You are {trait2}, you go first.\" \"No, we go "
        "together,\" {said_A}. \"We must {sneak1},\" {said_A}, \"as {wild_animal.a} {sneak1.s}.\" "
        "So they went {sneak1.ing} through the {room} and the {room}, each with {thing.a} in one "
        "hand. {scene_home}"}},
      {"night_end",
       {"There, {noise_at}, sat {C} and ate {dish1.a}. \"I could not sleep,\" {said_C}. \"Would "
        "you like one too?\" So they all ate {dish1.s} at night, and {B} told everybody at school "
        "about {wild1.a} that was really {C}. {moral}",
        "It was only {bird1.a}. It had hidden {noise_at}. It had come through the window and could "
        "not find the way out. {A} opened the door, and it flew to the {tree1}. \"{wild1.a}!\" "
        "said {B} and laughed. \"A thief!\" {said_A}. In the morning the {bird1} sat on the "
        "{tree1}. {moral}"}},
  };
  return rules;
}

}  // namespace forge::data::stories
